import { EvictionPluginDefinition } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import type { KubeObject } from "@nodekeeper/core/kube";
import { until } from "@nodekeeper/testing/until";
import { createClient } from "nice-grpc";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PodOffer } from "../../agent/src/eviction/ask/pod-offer.ts";
import { type SocketCalls, socketCalls } from "../../agent/src/eviction/ask/socket-calls.ts";
import { observeJson } from "../../agent/src/eviction/observe/observed-pod.ts";
import {
  RecordingHandler,
  type RunningManager,
  startManager,
  temporaryDirectory,
} from "../../agent/src/plugins/testing/setup.ts";
import {
  type ActivePod,
  type EvictionPlugin,
  type EvictionPluginOptions,
  type NamedPod,
  type Plugin,
  serveEvictionPlugin,
} from "./index.ts";

let directory: ReturnType<typeof temporaryDirectory>;
let plugin: Plugin | undefined;
let agent: RunningManager | undefined;
let calls: SocketCalls | undefined;
const { signal } = new AbortController();

beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(async () => {
  calls?.close();
  await plugin?.stop();
  await agent?.stop();
  agent = undefined;
  directory.remove();
});

/** Serves a plugin; gives the calls of the agent's own client to it. */
async function serve(options: Partial<EvictionPluginOptions> = {}): Promise<SocketCalls> {
  plugin = serveEvictionPlugin({ name: "sample", socketDir: directory.path, ...options });
  await plugin.ready;
  calls = socketCalls(plugin.socketPath);
  return calls;
}

function podNamed(name: string, padding = ""): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "shop",
      uid: `uid-${name}`,
      labels: { app: name },
      annotations: { note: "fragile", padding },
    },
    spec: {
      nodeName: "node-1",
      priority: 7,
      containers: [{ name: "main", resources: { requests: { cpu: "250m" } } }],
    },
    status: { phase: "Running", qosClass: "Burstable", startTime: "2026-01-02T03:04:05Z" },
  } as KubeObject;
}

const offerOf = (...names: string[]) => new PodOffer(names.map((name) => observeJson(podNamed(name))));
const question = { plugin: "sample", scope: "memory", topN: 1, candidateUids: null };
const named = (name: string) => ({ uid: `uid-${name}`, namespace: "shop", name });

describe("registration", () => {
  it("is registered as an eviction plugin", async () => {
    const handler = new RecordingHandler("EvictionPlugin");
    agent = startManager(directory.path, { handlers: [handler] });
    await serve();
    await until("registered", () => plugin?.registration.state === "registered");
    expect(handler.calls).toEqual(["register sample 1"]);
  });

  it.each([
    ["none", undefined, ""],
    ["a text", "abc", "abc"],
    ["a function", async () => "fresh", "fresh"],
  ])("its token: %s", async (_what, token, expected) => {
    const agentCalls = await serve(token === undefined ? {} : { token });
    expect(await agentCalls.getToken(signal)).toBe(expected);
  });
});

describe("what is left out", () => {
  it("is not met, and names no pod", async () => {
    const agentCalls = await serve();
    expect(await agentCalls.thresholdMet(offerOf("a"), signal)).toMatchObject({
      metType: "none",
      condition: null,
      candidateUids: [],
    });
    expect(await agentCalls.getTopEvictionPods(offerOf("a"), question, signal)).toEqual({
      pods: [],
      gracePeriodSeconds: null,
    });
    expect(await agentCalls.getEvictPods(offerOf("a"), signal)).toEqual({ pods: [], condition: null });
  });

  it("has sane values in an answer", async () => {
    const agentCalls = await serve({ thresholdMet: () => ({ metType: "soft" }) });
    expect(await agentCalls.thresholdMet(offerOf(), signal)).toEqual({
      metType: "soft",
      scope: "",
      thresholdValue: 0,
      observedValue: 0,
      operator: "greaterThan",
      gracePeriodSeconds: 0,
      condition: null,
      candidateUids: [],
    });
  });
});

describe("answers", () => {
  it("a threshold with all its fields", async () => {
    const shared = {
      metType: "hard",
      scope: "memory",
      observedValue: 3,
      thresholdValue: 4,
      operator: "lessThan",
      gracePeriodSeconds: 30,
    } as const;
    const condition = {
      name: "LowMemory",
      effects: ["reclaimed_cores/NoSchedule"],
      target: "customNodeResource",
    } as const;
    const agentCalls = await serve({
      thresholdMet: (pods) => ({ ...shared, condition, candidates: pods.filter(({ name }) => name === "b") }),
    });
    expect(await agentCalls.thresholdMet(offerOf("a", "b"), signal)).toEqual({
      ...shared,
      condition: { ...condition, met: true },
      candidateUids: ["uid-b"],
    });
  });

  it.each([
    [1, ["c"]],
    [0, ["c", "b", "a"]],
  ])("top pods: of more than topN %i the first ones", async (topN, expected) => {
    const asked: unknown[] = [];
    const agentCalls = await serve({
      getTopEvictionPods(pods, { topN: wanted, scope }) {
        asked.push([wanted, scope]);
        return [...pods].reverse();
      },
    });
    const answer = await agentCalls.getTopEvictionPods(offerOf("a", "b", "c"), { ...question, topN }, signal);
    expect(asked).toEqual([[topN, "memory"]]);
    expect(answer).toEqual({ pods: expected.map(named), gracePeriodSeconds: null });
  });

  it("top pods, with former evictions of an agent that sends them", async () => {
    const received: unknown[] = [];
    await serve({ getTopEvictionPods: (_pods, { records }) => void received.push(...records) });
    const channel = dialUnix(plugin!.socketPath, { maxReceiveBytes: 4_096 });
    await createClient(EvictionPluginDefinition, channel).getTopEvictionPods({
      candidateEvictionRecords: [
        {
          uid: "a",
          hasPdb: true,
          disruptionsAllowed: 1,
          currentHealthy: 3,
          desiredHealthy: 2,
          expectedPods: 4,
          buckets: { list: [{ time: 5n, duration: 60n, count: 2n }] },
        },
        { uid: "b" },
      ],
    });
    channel.close();
    const none = {
      disruptionsAllowed: 0,
      currentHealthy: 0,
      desiredHealthy: 0,
      expectedPods: 0,
      buckets: [],
    };
    expect(received).toEqual([
      {
        uid: "a",
        hasDisruptionBudget: true,
        disruptionsAllowed: 1,
        currentHealthy: 3,
        desiredHealthy: 2,
        expectedPods: 4,
        buckets: [{ time: 5, duration: 60, count: 2 }],
      },
      { uid: "b", hasDisruptionBudget: false, ...none },
    ]);
  });

  it("top pods with a grace period", async () => {
    const agentCalls = await serve({ getTopEvictionPods: async (pods) => ({ pods, gracePeriodSeconds: 0 }) });
    expect(await agentCalls.getTopEvictionPods(offerOf("a"), question, signal)).toEqual({
      pods: [named("a")],
      gracePeriodSeconds: 0,
    });
  });

  it("pods to evict, known to the agent or not, and a condition", async () => {
    const deleted: NamedPod = named("deleted");
    const agentCalls = await serve({
      getEvictPods: ([first]) => ({
        pods: [
          { pod: first!, reason: "leaks", force: true, gracePeriodSeconds: 5 },
          { pod: deleted, reason: "old" },
        ],
        condition: { name: "Leaking", effects: ["NoExecute"] },
      }),
    });
    expect(await agentCalls.getEvictPods(offerOf("a"), signal)).toEqual({
      pods: [
        { pod: named("a"), reason: "leaks", force: true, gracePeriodSeconds: 5 },
        { pod: deleted, reason: "old", force: false, gracePeriodSeconds: null },
      ],
      condition: { target: "node", name: "Leaking", effects: ["NoExecute"], met: true },
    });
  });

  it("a bare list of pods to evict", async () => {
    const agentCalls = await serve({ getEvictPods: (pods) => pods.map((pod) => ({ pod, reason: "why" })) });
    expect((await agentCalls.getEvictPods(offerOf("a", "b"), signal)).pods).toMatchObject([
      { pod: named("a"), reason: "why" },
      { pod: named("b"), reason: "why" },
    ]);
  });
});

describe("pods", () => {
  it("have what a plugin decides by", async () => {
    let seen: ActivePod | undefined;
    const agentCalls = await serve({
      getEvictPods([pod]) {
        seen = pod;
        return undefined;
      },
    });
    await agentCalls.getEvictPods(offerOf("web"), signal);
    const { uid, namespace, name, labels, annotations, priority, nodeName, phase, qosClass, startedAt } =
      seen!;
    expect({ uid, namespace, name, labels, priority, nodeName, phase, qosClass, startedAt }).toEqual({
      ...named("web"),
      labels: { app: "web" },
      priority: 7,
      nodeName: "node-1",
      phase: "Running",
      qosClass: "Burstable",
      startedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
    });
    expect(annotations.note).toBe("fragile");
    expect(seen!.message.spec?.containers[0]?.resources?.requests).toEqual({ cpu: { string: "250m" } });
  });

  it("are taken by the thousand, above gRPC's own limit of 4 MiB", async () => {
    const big = observeJson(podNamed("big", "x".repeat(8_000)));
    const offer = new PodOffer(Array.from({ length: 1_000 }, () => big));
    expect(offer.bytes.length).toBeGreaterThan(4 * 1024 * 1024);
    const agentCalls = await serve({
      thresholdMet: (pods) => ({ metType: "none", observedValue: pods.length }),
    });
    expect((await agentCalls.thresholdMet(offer, signal)).observedValue).toBe(1_000);
  });
});

describe("requests for rounds", () => {
  const requestRound = (reason: string) => (plugin as EvictionPlugin).requestRound(reason);

  it("end the agent's call, which waits for them", async () => {
    const agentCalls = await serve();
    const waiting = agentCalls.waitForRequest!(signal);
    requestRound("disk is full");
    expect(await waiting).toBe("disk is full");
    const again = agentCalls.waitForRequest!(signal);
    requestRound("x".repeat(2_000));
    expect(await again).toBe("x".repeat(1_024));
  });

  it("made while no call waits are kept, the newest of them", async () => {
    const agentCalls = await serve();
    requestRound("first");
    requestRound("second");
    expect(await agentCalls.waitForRequest!(signal)).toBe("second");
  });
});

describe("failures", () => {
  it.each([
    ["throws", () => Promise.reject(new Error("sensor is unplugged")), "sensor is unplugged"],
    [
      "has a half second of grace",
      () => ({ metType: "hard", gracePeriodSeconds: 0.5 }),
      "whole number; got 0.5",
    ],
    ["knows another met type", () => ({ metType: "dire" }), "must be none, soft or hard; got dire"],
  ])("a plugin that %s fails that call, and answers others", async (_what, thresholdMet, message) => {
    const agentCalls = await serve({
      thresholdMet: thresholdMet as EvictionPluginOptions["thresholdMet"] & object,
      getEvictPods: (pods) => pods.map((pod) => ({ pod, reason: "" })),
    });
    await expect(agentCalls.thresholdMet(offerOf(), signal)).rejects.toThrow(message);
    expect((await agentCalls.getEvictPods(offerOf("a"), signal)).pods).toHaveLength(1);
  });

  it("a function's signal aborts when the agent no longer waits", async () => {
    const started = Promise.withResolvers<AbortSignal>();
    const agentCalls = await serve({
      thresholdMet: async (_pods, call) => {
        started.resolve(call.signal);
        return await new Promise<never>(() => {});
      },
    });
    const waiting = new AbortController();
    const answer = agentCalls.thresholdMet(offerOf(), waiting.signal).catch(() => "given up");
    const given = await started.promise;
    waiting.abort(new Error("no longer"));
    expect(await answer).toBe("given up");
    await until("it aborts", () => given.aborted);
  });

  it("stops though a function never answers", async () => {
    const started = Promise.withResolvers<void>();
    const agentCalls = await serve({
      getEvictPods: async () => {
        started.resolve();
        return await new Promise<never>(() => {});
      },
    });
    const answer = agentCalls.getEvictPods(offerOf("a"), signal).catch((err: Error) => err.message);
    await started.promise;
    await plugin!.stop();
    expect(await answer).toContain("the plugin is stopping");
  });
});
