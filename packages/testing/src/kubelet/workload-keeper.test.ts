import { createKubeClient, createKubeMetrics, type KubeApiClient } from "@nodekeeper/core/kube";
import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDevApiServer, type DevApiServer, type Fault, type RequestInfo } from "../index.ts";
import { until } from "../until.ts";
import type { JsonPod } from "./pods.ts";
import { type Workload, WorkloadKeeper } from "./workload-keeper.ts";

const web: Workload = {
  name: "web",
  namespace: "default",
  owner: "ReplicaSet",
  replicas: 2,
  labels: { tier: "front" },
  annotations: { note: "fragile" },
  spec: { priority: 5, containers: [{ name: "nginx" }] },
};
const proxy: Workload = { ...web, name: "proxy", namespace: "kube-system", owner: "DaemonSet", replicas: 1 };

let server: DevApiServer;
let client: KubeApiClient;
let stop: AbortController;
let running: Promise<void>;
let fault: (request: RequestInfo) => Fault | undefined;

beforeEach(async () => {
  fault = () => undefined;
  server = createDevApiServer({
    clock: systemClock,
    log: silentLogger,
    faults: (request) => fault(request),
  });
  const { url } = await server.start();
  stop = new AbortController();
  client = createKubeClient({
    access: { source: "test", server: new URL(url) },
    version: "test",
    metrics: createKubeMetrics(new Registry()),
    clock: systemClock,
    log: silentLogger,
  });
});

afterEach(async () => {
  stop.abort(stopped("test is over"));
  await running;
  client.close();
  await server.stop();
});

function keep(...workloads: Workload[]): void {
  const kubeMetrics = createKubeMetrics(new Registry());
  const common = { client, clock: systemClock, log: silentLogger, kubeMetrics };
  running = new WorkloadKeeper({ nodeName: "worker-1", workloads, ...common }).run(stop.signal);
}

const pods = (app = "web") =>
  (server.store.list("pods") as JsonPod[]).filter(({ metadata }) => metadata.labels?.app === app);
const names = () => pods().map(({ metadata }) => metadata.name!);
const settled = () => new Promise((resolve) => setTimeout(resolve, 100));

describe("a workload's pods", () => {
  it("are made as they are described, with an owner and a name each", async () => {
    keep(web, proxy);
    await until("all are there", () => pods().length === 2 && pods("proxy").length === 1);
    await settled();
    expect(new Set(names()).size).toBe(2);
    expect(pods()[0]).toMatchObject({
      metadata: {
        name: expect.stringMatching(/^web-[a-z0-9]{5}$/),
        labels: { app: "web", tier: "front" },
        annotations: { note: "fragile" },
        ownerReferences: [{ kind: "ReplicaSet", name: "web", controller: true }],
      },
      spec: { priority: 5, nodeName: "worker-1", containers: [{ name: "nginx" }] },
    });
    expect(pods("proxy")[0]!.metadata).toMatchObject({
      namespace: "kube-system",
      ownerReferences: [{ kind: "DaemonSet" }],
    });
  });

  it("that were there before stay", async () => {
    keep(web);
    await until("all are there", () => pods().length === 2);
    const before = names();
    stop.abort(stopped("a restart"));
    await running;
    stop = new AbortController();
    keep(web);
    await settled();
    expect(names()).toEqual(before);
  });
});

describe("a pod that goes has a successor of another name", () => {
  it.each([
    [
      "when it is terminating",
      (pod: JsonPod) => ({
        ...pod,
        metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
      }),
    ],
    ["when it has ended", (pod: JsonPod) => ({ ...pod, status: { phase: "Failed" } })],
    ["when it is deleted", () => undefined],
  ])("%s", async (_when, change) => {
    keep(web);
    await until("all are there", () => pods().length === 2);
    const before = names();
    const changed = change(pods()[0]!);
    if (changed) server.store.put(changed);
    else server.store.delete("pods", before[0]!, "default");
    await until("the successor", () => names().some((name) => !before.includes(name)));
    await settled();
    expect(names().filter((name) => !before.includes(name))).toHaveLength(1);
  });
});

describe("a pod that goes before the answer to its making is read", () => {
  // Each at the time the pod is stored: the watch reports it before the answer is there.
  it.each([
    ["ended", (pod: JsonPod) => void server.store.put({ ...pod, status: { phase: "Failed" } })],
    [
      "was removed",
      ({ metadata }: JsonPod) => void server.store.delete("pods", metadata.name!, metadata.namespace),
    ],
  ])("has a successor: it %s", async (_what, go) => {
    const create = client.create.bind(client);
    let isFirst = true;
    let made: string | undefined;
    client.create = async (...given) => {
      const pod = await create(...given);
      if (!isFirst) return pod;
      isFirst = false;
      made = pod.metadata.name!;
      go(pods().find(({ metadata }) => metadata.name === made)!);
      // The answer is slow, the watch is not.
      await settled();
      return pod;
    };
    keep({ ...web, replicas: 1 });
    await until("the successor", () => names().some((name) => name !== made) && made !== undefined);
  });
});

describe("an API server that fails", () => {
  it("is asked again", async () => {
    let failures = 0;
    fault = ({ method }) => (method === "POST" && failures++ < 2 ? { status: 503 } : undefined);
    keep(web);
    await until("all are there", () => pods().length === 2);
    expect(failures).toBeGreaterThan(2);
  });

  it("whose watch is late has no pod made twice", async () => {
    fault = ({ query }) => (query.has("watch") ? { delayMs: 300 } : undefined);
    keep(web);
    await until("all are there", () => pods().length === 2);
    await settled();
    expect(pods()).toHaveLength(2);
  });
});
