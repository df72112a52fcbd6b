import { ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import {
  createKubeClient,
  createKubeMetrics,
  type KubeApiClient,
  type KubeObject,
  podResource,
} from "@nodekeeper/core/kube";
import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDevApiServer, type DevApiServer, type Fault, type RequestInfo } from "../index.ts";
import { SimulatedRuntime } from "../runtime/simulated-runtime.ts";
import { until } from "../until.ts";
import { DevKubelet } from "./dev-kubelet.ts";
import type { JsonPod } from "./pods.ts";
import { EXIT_CODE, EXITS_AFTER_SECONDS } from "./sample-endings.ts";

const NODE = "worker-1";

let server: DevApiServer;
let client: KubeApiClient;
let runtime: SimulatedRuntime;
let stop: AbortController;
let running: Promise<void>;
let requests: RequestInfo[];
let fault: (request: RequestInfo) => Fault | undefined;

beforeEach(async () => {
  requests = [];
  fault = () => undefined;
  server = createDevApiServer({
    clock: systemClock,
    log: silentLogger,
    removePodsAfterGrace: false,
    faults: (request) => {
      requests.push(request);
      return fault(request);
    },
  });
  const { url } = await server.start();
  const kubeMetrics = createKubeMetrics(new Registry());
  const common = { clock: systemClock, log: silentLogger };
  client = createKubeClient({
    access: { source: "test", server: new URL(url) },
    version: "test",
    metrics: kubeMetrics,
    ...common,
  });
  runtime = new SimulatedRuntime({ clock: systemClock });
  stop = new AbortController();
  const kubelet = new DevKubelet({
    client,
    nodeName: NODE,
    runtime,
    kubeMetrics,
    stopAfterMs: 100,
    ...common,
  });
  running = kubelet.run(stop.signal);
});

afterEach(async () => {
  stop.abort(stopped("test is over"));
  await running;
  client.close();
  await server.stop();
});

async function addPod(name: string, spec: object = {}): Promise<string> {
  const { metadata } = await client.create(podResource, {
    metadata: { name, namespace: "default" },
    spec: {
      nodeName: NODE,
      terminationGracePeriodSeconds: 5,
      containers: [
        { name: "app", image: "app:1", resources: { requests: { memory: "64Mi" } } },
        { name: "helper" },
      ],
      ...spec,
    },
  } as KubeObject);
  return metadata.uid!;
}

const podNamed = (name: string) => server.store.get("pods", name, "default") as JsonPod | undefined;
const isReady = (name: string) =>
  podNamed(name)?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
const containersOf = (uid: string) => [...runtime.containers.values()].filter(({ pod }) => pod.uid === uid);
const runningOf = (uid: string) =>
  containersOf(uid).filter(({ state }) => state === ContainerState.CONTAINER_RUNNING);
const remove = (name: string, more: { gracePeriodSeconds?: number } = {}) =>
  client.delete(podResource, name, { namespace: "default", ...more });

describe("a pod of the node", () => {
  it("runs, and its status is written to the API server", async () => {
    const uid = await addPod("web");
    await until("ready", () => isReady("web"));
    expect(runningOf(uid).map(({ name, memoryBytes }) => [name, memoryBytes])).toEqual([
      ["app", 64 * 2 ** 20],
      ["helper", 32 * 2 ** 20],
    ]);
    const { status } = podNamed("web")!;
    expect(status).toMatchObject({
      phase: "Running",
      podIP: expect.stringMatching(/^10\.244\./),
      startTime: expect.stringMatching(/Z$/),
      containerStatuses: [
        { name: "app", image: "app:1", ready: true, restartCount: 0, state: { running: {} } },
        { name: "helper", ready: true },
      ],
    });
    expect(status!.containerStatuses![0]!.containerID).toBe(`simulated://${containersOf(uid)[0]!.id}`);
  });

  it("of another node is left alone", async () => {
    await addPod("foreign", { nodeName: "worker-2" });
    await addPod("web");
    await until("ready", () => isReady("web"));
    expect([...runtime.sandboxes.values()].map(({ pod }) => pod.name)).toEqual(["web"]);
    expect(podNamed("foreign")!.status).toEqual({ phase: "Pending" });
  });

  it("keeps conditions of others, and gets no write while nothing changes", async () => {
    await addPod("web");
    await until("ready", () => isReady("web"));
    const condition = { type: "DisruptionTarget", status: "True" };
    const before = podNamed("web")!;
    server.store.put({
      ...before,
      status: { ...before.status, conditions: [...before.status!.conditions!, condition] },
    });
    await addPod("other");
    await until("the other is ready", () => isReady("other"));
    expect(podNamed("web")!.status!.conditions).toContainEqual(condition);
    const writes = requests.filter(({ method, path }) => method === "PATCH" && path.includes("/web/"));
    expect(writes).toHaveLength(1);
  });

  it("whose container ends has it started again, and its status written", async () => {
    const uid = await addPod("web");
    await until("ready", () => isReady("web"));
    runtime.exit(runningOf(uid)[0]!.id, 3);
    await until("its status is written", () => !isReady("web"));
    const [{ state } = { state: {} }] = podNamed("web")!.status!.containerStatuses!;
    expect(state).toMatchObject({ terminated: { exitCode: 3, reason: "Error" } });
    await until("running again", () => isReady("web"));
    expect(podNamed("web")!.status!.containerStatuses!.find(({ name }) => name === "app")).toMatchObject({
      restartCount: 1,
    });
    expect(runningOf(uid)).toHaveLength(2);
  });

  it("annotated so has its containers exit by themselves, again after each start", async () => {
    await client.create(podResource, {
      metadata: {
        name: "failing",
        namespace: "default",
        annotations: { [EXITS_AFTER_SECONDS]: "0.2", [EXIT_CODE]: "3" },
      },
      spec: { nodeName: NODE, containers: [{ name: "app" }] },
    } as KubeObject);
    const status = () => podNamed("failing")?.status?.containerStatuses?.[0];
    await until("it was started a third time", () => (status()?.restartCount ?? 0) >= 2);
    await until("it has exited", () => {
      const state = status()?.state;
      return state && "terminated" in state && state.terminated.exitCode === 3;
    });
  });

  it.each([
    ["Never", 0, "Succeeded"],
    ["OnFailure", 0, "Succeeded"],
    ["Never", 1, "Failed"],
  ])("with restart policy %s ends for good with code %i: %s", async (restartPolicy, exitCode, phase) => {
    const uid = await addPod("job", { restartPolicy });
    await until("ready", () => isReady("job"));
    for (const { id } of runningOf(uid)) runtime.exit(id, exitCode);
    await until("ended", () => podNamed("job")!.status!.phase === phase);
    await remove("job");
    await until("nothing is left", () => containersOf(uid).length === 0);
  });
});

describe("a pod that is deleted", () => {
  it("is stopped within its grace period, reported, forgotten, and removed from the runtime", async () => {
    const uid = await addPod("web");
    await until("ready", () => isReady("web"));
    await remove("web");
    await until("its containers have ended", () => runningOf(uid).length === 0);
    expect(containersOf(uid).map(({ exitCode }) => exitCode)).toEqual([143, 143]);
    await until("its status is written", () => podNamed("web")!.status!.phase === "Failed");
    expect(podNamed("web")!.status!.containerStatuses).toMatchObject([
      { state: { terminated: { exitCode: 143 } } },
      { state: { terminated: { exitCode: 143 } } },
    ]);
    await until("forgotten", () => podNamed("web") === undefined);
    const confirmed = requests.filter(({ method }) => method === "DELETE");
    expect(confirmed).toHaveLength(2);
    await until("removed", () => runtime.sandboxes.size === 0 && runtime.containers.size === 0);
  });

  it("again with a shorter grace period, has that one", async () => {
    const uid = await addPod("slow");
    await until("ready", () => isReady("slow"));
    for (const container of runningOf(uid)) container.stopAfterMs = 86_400_000;
    await remove("slow", { gracePeriodSeconds: 86_400 });
    await addPod("web");
    await until("others continue", () => isReady("web"));
    expect(runningOf(uid)).toHaveLength(2);
    await remove("slow", { gracePeriodSeconds: 1 });
    await until("deleted", () => podNamed("slow") === undefined);
  });

  it("by force is killed at once", async () => {
    const uid = await addPod("web");
    await until("ready", () => isReady("web"));
    for (const container of runningOf(uid)) container.stopAfterMs = 60_000;
    await remove("web", { gracePeriodSeconds: 0 });
    expect(podNamed("web")).toBeUndefined();
    await until("nothing is left", () => containersOf(uid).length === 0);
  });

  it("before it ever ran is forgotten at once", async () => {
    stop.abort(stopped("the kubelet is stopped"));
    await running;
    await addPod("web");
    await remove("web");
    stop = new AbortController();
    const kubeMetrics = createKubeMetrics(new Registry());
    const common = { client, runtime, clock: systemClock, log: silentLogger };
    running = new DevKubelet({ nodeName: NODE, kubeMetrics, ...common }).run(stop.signal);
    await until("forgotten", () => podNamed("web") === undefined);
    expect(runtime.sandboxes.size).toBe(0);
  });

  it("does not take its successor of the same name with it", async () => {
    const uid = await addPod("db-0");
    await until("ready", () => isReady("db-0"));
    let successor = "";
    fault = ({ method }) => {
      if (method !== "DELETE" || successor !== "") return undefined;
      if (podNamed("db-0")?.metadata.deletionTimestamp === undefined) return undefined;
      // Just before the kubelet's write arrives, the pod is recreated.
      const old = podNamed("db-0")!;
      server.store.delete("pods", "db-0", "default");
      const { uid: _uid, deletionTimestamp: _time, ...metadata } = old.metadata;
      successor = server.store.put({
        ...old,
        metadata: { ...metadata, uid: "successor" },
        status: { phase: "Pending" },
      }).metadata.uid!;
      return undefined;
    };
    await remove("db-0");
    await until("the successor is ready", () => successor !== "" && isReady("db-0"));
    expect(podNamed("db-0")!.metadata.uid).toBe("successor");
    await until("the first is removed", () => containersOf(uid).length === 0);
    expect(runningOf("successor")).toHaveLength(2);
  });
});

describe("an API server that fails", () => {
  it("is asked again, for one pod's writes and deletions, while others continue", async () => {
    let failures = 0;
    fault = ({ method, path }) => {
      const isWrite = method === "PATCH" || method === "DELETE";
      if (!isWrite || !path.includes("/unlucky") || failures >= 3) return undefined;
      failures++;
      return { status: 500, body: { kind: "Status", message: "not now" } };
    };
    const uid = await addPod("unlucky");
    await addPod("lucky");
    await until("the other is ready", () => isReady("lucky"));
    await until("ready at last", () => isReady("unlucky"));
    expect(failures).toBe(3);
    await remove("unlucky");
    failures = 1;
    await until("deleted at last", () => podNamed("unlucky") === undefined);
    await until("nothing is left", () => containersOf(uid).length === 0);
  });

  it("that breaks the watch loses nothing", async () => {
    const uid = await addPod("web");
    await until("ready", () => isReady("web"));
    server.cutWatches();
    await remove("web");
    await until("deleted", () => podNamed("web") === undefined);
    await until("nothing is left", () => containersOf(uid).length === 0);
  });
});

it("ends with nothing left at work while a pod is being stopped", async () => {
  const uid = await addPod("slow");
  await until("ready", () => isReady("slow"));
  for (const container of runningOf(uid)) container.stopAfterMs = 60_000;
  await remove("slow", { gracePeriodSeconds: 30 });
  await until("its status is written", () => podNamed("slow")!.metadata.deletionTimestamp);
  stop.abort(stopped("enough"));
  await running;
});
