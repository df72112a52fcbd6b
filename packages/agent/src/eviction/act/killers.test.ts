import {
  createKubeClient,
  createKubeMetrics,
  type KubeApiClient,
  type KubeObject,
} from "@nodekeeper/core/kube";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer, type DevApiServer, type Fault } from "@nodekeeper/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { liveEvictionPolicy } from "../../assembly/testing/defaults.ts";
import { jsonPod } from "../testing/round-parts.ts";
import { testNode } from "../testing/rounds.ts";
import { deletionKiller, evictionApiKiller } from "./api-killers.ts";
import { readFreshPod } from "./fresh-pod.ts";
import type { KillRequest } from "./killer.ts";

// The real client, over HTTP, at the embedded API server.
let server: DevApiServer;
let client: KubeApiClient;
let fault: (method: string, path: string) => Fault | undefined;
let bodies: { path: string; body: unknown }[];
const { signal } = new AbortController();

beforeEach(async () => {
  fault = () => undefined;
  bodies = [];
  server = createDevApiServer({
    clock: systemClock,
    log: silentLogger,
    removePodsAfterGrace: false,
    faults: ({ method, path }) => fault(method, path),
    onRequest: ({ path, body }) => void bodies.push({ path, body }),
  });
  await server.start();
  client = connect(30_000);
});

/** A client of the server whose calls end after `deadlineMs`. */
function connect(deadlineMs: number): KubeApiClient {
  return createKubeClient({
    access: { server: new URL(server.url), source: "test" },
    clock: systemClock,
    log: silentLogger,
    metrics: createKubeMetrics(new Registry()),
    version: "test",
    deadlineMs,
    qps: 1_000,
    burst: 1_000,
  });
}

afterEach(async () => {
  client.close();
  await server.stop();
});

function putPod(name: string, labels: Record<string, string> = {}): KubeObject {
  const ready = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
  const { metadata: _, ...rest } = jsonPod(name, { status: ready });
  const metadata = { name, namespace: "default", labels };
  return server.store.put({ ...rest, metadata } as KubeObject);
}

function putBudget(name: string, status: object | undefined): void {
  server.store.put({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace: "default" },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
    ...(status ? { status } : {}),
  } as KubeObject);
}

function requestFor(pod: KubeObject, changes: Partial<KillRequest> = {}): KillRequest {
  const { name = "", namespace = "", uid = "", resourceVersion } = pod.metadata;
  return {
    pod: { name, namespace, uid },
    resourceVersion,
    gracePeriodSeconds: null,
    ownGracePeriodSeconds: 30,
    sending: () => true,
    ...changes,
  };
}

const isTerminating = (name: string) =>
  server.store.get("pods", name, "default")?.metadata.deletionTimestamp !== undefined;

describe("the eviction API", () => {
  const kill = (pod: KubeObject, changes: Partial<KillRequest> = {}) =>
    evictionApiKiller(client).kill(requestFor(pod, changes), signal);

  it("evicts with the pod's UID and version as preconditions, and sends no grace period", async () => {
    const pod = putPod("web");
    const { uid, resourceVersion } = pod.metadata;
    expect(await kill(pod)).toMatchObject({ kind: "accepted" });
    expect(isTerminating("web")).toBe(true);
    expect(bodies.at(-1)).toMatchObject({
      path: "/api/v1/namespaces/default/pods/web/eviction",
      body: { apiVersion: "policy/v1", deleteOptions: { preconditions: { uid, resourceVersion } } },
    });
    const { deleteOptions } = bodies.at(-1)!.body as { deleteOptions: object };
    expect(deleteOptions).not.toHaveProperty("gracePeriodSeconds");
  });

  it("one pod's grace period never leaks to the next", async () => {
    await kill(putPod("a"), { gracePeriodSeconds: 0 });
    await kill(putPod("b"));
    const options = bodies
      .filter(({ path }) => path.endsWith("/eviction"))
      .map(({ body }) => (body as { deleteOptions: { gracePeriodSeconds?: number } }).deleteOptions);
    expect(options[0]).toMatchObject({ gracePeriodSeconds: 0 });
    expect(options[1]).not.toHaveProperty("gracePeriodSeconds");
  });

  it("does not delete a pod that was recreated under the name", async () => {
    const old = putPod("web");
    server.store.delete("pods", "web", "default");
    putPod("web");
    expect(await kill(old)).toMatchObject({ kind: "retry", maybeSent: false });
    expect(isTerminating("web")).toBe(false);
    expect(await readFreshPod(freshReading(), requestFor(old).pod, signal)).toEqual({
      kind: "replaced",
      seen: "pod deleted, and another pod created under its name",
    });
  });

  it("of a deleted pod is done", async () => {
    const pod = putPod("web");
    server.store.delete("pods", "web", "default");
    expect(await kill(pod)).toMatchObject({ kind: "deleted", seen: "pod deleted" });
  });

  it.each([
    ["forbids", { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1 }, "failed"],
    ["allows", { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 }, "accepted"],
  ])("a budget %s", async (_name, status, kind) => {
    const pod = putPod("web", { app: "web" });
    putBudget("web", status);
    const result = await kill(pod);
    expect(result.kind).toBe(kind);
    expect(isTerminating("web")).toBe(kind === "accepted");
    if (kind === "failed") {
      expect(result).toMatchObject({
        isBudget: true,
        message: expect.stringMatching(/PodDisruptionBudget default\/web/),
      });
    }
  });

  it("two budgets for one pod: it fails, and the message names deletion", async () => {
    const pod = putPod("web", { app: "web" });
    putBudget("one", { disruptionsAllowed: 1 });
    putBudget("two", { disruptionsAllowed: 1 });
    expect(await kill(pod)).toMatchObject({ kind: "failed", message: expect.stringContaining("deleted") });
  });

  const status = (code: number, body: object, headers = {}): Fault => ({
    status: code,
    headers,
    body: { kind: "Status", apiVersion: "v1", code, ...body },
  });
  const budgetCause = {
    causes: [{ reason: "DisruptionBudget", message: "The disruption budget web needs 1" }],
  };

  const noRight =
    'pods "web" is forbidden: User "system:serviceaccount:nk:agent" cannot create resource "pods/eviction" in API group "" in the namespace "default"';
  const refusalsOfOnePod = [
    'admission webhook "guard.example.com" denied the request: the pod is a leader',
    // A webhook may word its refusal as it likes.
    'admission webhook "guard.example.com" denied the request: User "agent" cannot evict resource "web"',
    "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'leaders' with binding 'all' denied request: a leader",
    'pods "web" is forbidden: node "worker-1" can only evict pods with spec.nodeName set to itself',
  ];

  it.each<[string, Fault, object]>([
    [
      "a budget that is not observed yet: retry after the given time",
      status(
        429,
        { message: "busy", details: { ...budgetCause, retryAfterSeconds: 10 } },
        { "retry-after": "10" },
      ),
      { kind: "retry", retryAfterMs: 10_000, maybeSent: false },
    ],
    [
      "throttling: retry after the given time",
      status(429, { message: "too many requests" }, { "retry-after": "7" }),
      { kind: "retry", retryAfterMs: 7_000, maybeSent: false },
    ],
    [
      "a budget that allows less than nothing (403): the pod's matter",
      status(403, { message: "negative", details: { kind: "poddisruptionbudgets", name: "web" } }),
      { kind: "failed", isBudget: true },
    ],
    [
      "a right that is missing (403)",
      status(403, { message: noRight, details: { kind: "pods", name: "web" } }),
      { kind: "failed", isForbidden: true, message: expect.stringContaining("create pods/eviction") },
    ],
    [
      "a proxy's 403: the same for every pod",
      { status: 403, body: "no way" },
      { kind: "failed", isForbidden: true },
    ],
    ...refusalsOfOnePod.map((message): [string, Fault, object] => [
      `a 403 about this pod: ${message.slice(0, 40)}`,
      status(403, { message, details: { kind: "pods", name: "web" } }),
      { kind: "failed", message: expect.not.stringContaining("needs the right") },
    ]),
    ["a 404 of a proxy: again", { status: 404, body: "<html>" }, { kind: "retry" }],
    ["a 500: again, perhaps sent", status(500, { message: "etcd" }), { kind: "retry", maybeSent: true }],
    ["a bad request: not again", status(400, { message: "bad" }), { kind: "failed" }],
    ["a broken connection: again, perhaps sent", "cut", { kind: "retry", maybeSent: true }],
    ["no answer: again, perhaps sent", "hang", { kind: "retry", maybeSent: true }],
  ])("%s", async (_name, what, expected) => {
    const pod = putPod("web");
    fault = (method) => (method === "POST" ? what : undefined);
    if (what === "hang") {
      client.close();
      client = connect(200);
    }
    expect(await kill(pod)).toMatchObject(expected);
    expect(isTerminating("web")).toBe(false);
  });
});

it.each([evictionApiKiller, deletionKiller])(
  "sends nothing that could not be recorded: %o",
  async (killerOf) => {
    const pod = putPod("web");
    const before = bodies.length;
    const request = requestFor(pod, { sending: () => false });
    expect(await killerOf(client).kill(request, signal)).toEqual({ kind: "unsent" });
    expect(bodies).toHaveLength(before);
    expect(isTerminating("web")).toBe(false);
  },
);

describe.each([
  ["eviction", evictionApiKiller],
  ["deletion", deletionKiller],
])("%s of a pod that changed after it was read", (_name, killerOf) => {
  const kill = (pod: KubeObject) => killerOf(client).kill(requestFor(pod), signal);

  it("is refused, so that the deletion of another client is not taken for ours", async () => {
    const pod = putPod("web");
    server.store.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-05T08:00:00Z" } });
    expect(await kill(pod)).toMatchObject({ kind: "retry", maybeSent: false, isConflict: true });
  });

  it("is refused, because it may be protected now", async () => {
    const pod = putPod("web");
    putPod("web", { keep: "yes" });
    expect(await kill(pod)).toMatchObject({ kind: "retry", maybeSent: false, isConflict: true });
    expect(isTerminating("web")).toBe(false);
  });
});

describe("deletion", () => {
  const kill = (pod: KubeObject, changes: Partial<KillRequest> = {}) =>
    deletionKiller(client).kill(requestFor(pod, changes), signal);

  it("asks no budget", async () => {
    const pod = putPod("web", { app: "web" });
    putBudget("web", { disruptionsAllowed: 0 });
    expect(await kill(pod, { gracePeriodSeconds: 5 })).toMatchObject({ kind: "accepted" });
    expect(server.store.get("pods", "web", "default")?.metadata).toMatchObject({
      deletionGracePeriodSeconds: 5,
    });
  });

  it("does not evict a pod that was recreated", async () => {
    const old = putPod("web");
    server.store.delete("pods", "web", "default");
    putPod("web");
    expect(await kill(old)).toMatchObject({ kind: "retry" });
    expect(isTerminating("web")).toBe(false);
  });
});

function freshReading() {
  return { client, nodeName: testNode, skip: liveEvictionPolicy.skip };
}
