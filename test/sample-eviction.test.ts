import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { type Plugin, serveEvictionPlugin } from "@nodekeeper/sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { leakingPods } from "../examples/eviction/leaks.ts";
import { EvictionPlugins } from "../packages/agent/src/eviction/ask/plugins.ts";
import { PodOffer } from "../packages/agent/src/eviction/ask/pod-offer.ts";
import { createEvictionMetrics } from "../packages/agent/src/eviction/metrics.ts";
import { observeJson } from "../packages/agent/src/eviction/observe/observed-pod.ts";
import { ActivePod } from "../packages/sdk/src/active-pod.ts";
import { startScript } from "./support/processes.ts";

const began = Date.UTC(2026, 0, 1);
const { signal } = new AbortController();
let directory: string;
let now: number;
let plugin: Plugin;
let agent: EvictionPlugins;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nk-sample-"));
  now = began;
  plugin = serveEvictionPlugin({
    name: "sample",
    socketDir: directory,
    ...leakingPods({ limitMiB: 400, leakMiB: 10, now: () => now }),
  });
  await plugin.ready;
  agent = new EvictionPlugins({
    inTree: [],
    settings: () => ({ callTimeout: 30_000, syncPeriod: 5_000 }),
    tokenCheck: () => undefined,
    clock: systemClock,
    log: silentLogger,
    metrics: createEvictionMetrics(new Registry()),
  });
  const socket = plugin.socketPath;
  const registration = {
    type: "EvictionPlugin",
    name: "sample",
    endpoint: socket,
    registrationSocket: socket,
    uid: 0,
  };
  await agent.register({ ...registration, versions: ["v1alpha1"], generation: 1 }, signal);
});

afterEach(async () => {
  agent.close();
  await plugin.stop();
  rmSync(directory, { recursive: true });
});

/** A pod that was started so many seconds after the beginning; undefined: not yet. */
function pod(
  name: string,
  startedAfter: number | undefined,
  labels: object = { "example.com/sample": "true" },
) {
  const startTime =
    startedAfter === undefined ? undefined : new Date(began + startedAfter * 1_000).toISOString();
  return observeJson({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { uid: name, name, namespace: "default", labels: labels as Record<string, string> },
    spec: { nodeName: "node", containers: [{ name: "app", image: "app" }] },
    status: { phase: "Running", startTime },
  });
}

const startRound = () => agent.startRound({ callTimeout: 30_000, syncPeriod: 5_000 });

async function threshold(offer: PodOffer) {
  const [answers] = await startRound().ask(offer, signal);
  return (answers!.threshold as { answer: object }).answer;
}

async function top(offer: PodOffer, topN: number): Promise<string[]> {
  const question = { plugin: "sample", scope: "sample-memory", topN, candidateUids: null };
  const [answers] = await startRound().askTop(offer, [question], signal);
  return (answers!.top as { answer: { pods: { uid: string }[] } }).answer.pods.map(({ uid }) => uid);
}

describe("the sample eviction plugin", () => {
  it("sees the sample pods leak until they use more than the limit", async () => {
    const offer = new PodOffer([pod("a", 0), pod("b", 0)]);
    expect(await threshold(offer)).toMatchObject({
      metType: "none",
      observedValue: 128,
      thresholdValue: 400,
    });
    now += 13_000;
    expect(await threshold(offer)).toMatchObject({ metType: "none", observedValue: 388 });
    now += 1_000;
    expect(await threshold(offer)).toMatchObject({
      metType: "hard",
      scope: "sample-memory",
      observedValue: 408,
      operator: "greaterThan",
      gracePeriodSeconds: 0,
      condition: { target: "node", name: "SamplePressure", effects: ["PreferNoSchedule"], met: true },
    });
  });

  it("has enough with the pod that uses most, whose successor uses little", async () => {
    now += 20_000;
    const old = pod("old", 0);
    const young = pod("young", 15);
    expect(await top(new PodOffer([young, old]), 1)).toEqual(["old"]);
    expect(await top(new PodOffer([young, old]), 0)).toEqual(["old", "young"]);
    now += 20_000;
    expect(await threshold(new PodOffer([young, old]))).toMatchObject({ metType: "hard" });
    expect(await threshold(new PodOffer([young, pod("new", 40)]))).toMatchObject({ metType: "none" });
  });

  it("leaves other pods alone, and those that have not been started use no more", async () => {
    now += 3_600_000;
    const others = [pod("other", 0, {}), pod("no", 0, { "example.com/sample": "false" })];
    const offer = new PodOffer([...others, pod("waiting", undefined)]);
    expect(await threshold(offer)).toMatchObject({ metType: "none", observedValue: 64 });
    expect(await top(offer, 0)).toEqual(["waiting"]);
  });

  it("takes the first pods to have leaked before, where the first pressure is to come soon", async () => {
    const { thresholdMet } = leakingPods({
      limitMiB: 1_600,
      leakMiB: 10,
      firstPressureMs: 10_000,
      now: () => now,
    });
    const ask = async (...pods: ReturnType<typeof pod>[]) => {
      const seen = pods.map((one) => new ActivePod(one.encoded()));
      return (await thresholdMet(seen, { signal }))?.metType;
    };
    const pods = [pod("a", 0), pod("b", 0), pod("c", 0)];
    expect(await ask(pod("waiting", undefined))).toBe("none");
    expect(await ask(...pods)).toBe("none");
    now += 9_000;
    expect(await ask(...pods)).toBe("none");
    now += 2_000;
    expect(await ask(...pods)).toBe("hard");
    expect(await ask(pods[0]!, pods[1]!, pod("successor", 11))).toBe("none");
  });

  it.each([
    ["--limit=none", "must be MiB"],
    ["--leak=0", "must be MiB"],
    ["--first-pressure=soon", "must be 0s to 9999s"],
  ])("as a process refuses %s", async (flag, message) => {
    const script = startScript("examples/eviction/main.ts", ["--socket-dir", directory, flag]);
    expect(await script.ended).toBe(2);
    expect(script.output()).toContain(message);
  });
});
