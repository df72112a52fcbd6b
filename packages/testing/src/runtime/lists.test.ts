import { status } from "@grpc/grpc-js";
import { ContainerState, type DeepPartial, PodSandboxState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { FakeClock } from "@nodekeeper/core/lib";
import { afterEach, describe, expect, it } from "vitest";
import { SimulatedRuntime } from "../index.ts";
import { ListBytes } from "./list-bytes.ts";
import { simulations } from "./testing/serve.ts";

const { serve, end } = simulations();
afterEach(end);

const web = { uid: "u-web", name: "web-1", namespace: "shop" };
const job = { uid: "u-job", name: "job-1", namespace: "default" };

/** Two pods: of `web` one container runs and one is just made; of `job` one has exited, its sandbox is not ready. */
async function twoPods() {
  const clock = new FakeClock();
  const runtime = new SimulatedRuntime({ clock, isDualStack: true });
  const sandboxes = { web: runtime.runSandbox(web), job: runtime.runSandbox(job) };
  const containers = {
    running: runtime.runContainer(sandboxes.web, { name: "nginx" }),
    created: runtime.createContainer(sandboxes.web, { name: "side" }),
    exited: runtime.runContainer(sandboxes.job, { name: "main" }),
  };
  await clock.step(1_000);
  runtime.exit(containers.exited, 0);
  runtime.stopSandbox(sandboxes.job);
  await clock.step(1_000);
  return { ...(await serve({ runtime, clock, streamsLists: true })), sandboxes, containers };
}
type Sets = Awaited<ReturnType<typeof twoPods>>;

describe("filters", () => {
  const { CONTAINER_RUNNING, CONTAINER_EXITED, CONTAINER_UNKNOWN } = ContainerState;
  it.each<[string, (sets: Sets) => object, (keyof Sets["containers"])[]]>([
    ["none", () => ({}), ["running", "created", "exited"]],
    ["an ID", ({ containers }) => ({ id: containers.created }), ["created"]],
    ["the beginning of an ID", ({ containers }) => ({ id: containers.created.slice(0, 12) }), ["created"]],
    ["an ID of no container", () => ({ id: "unknown" }), []],
    ["a state", () => ({ state: { state: CONTAINER_RUNNING } }), ["running"]],
    ["the state that is 0", () => ({ state: {} }), ["created"]],
    ["a state that none is in", () => ({ state: { state: CONTAINER_UNKNOWN } }), []],
    ["a sandbox", ({ sandboxes }) => ({ podSandboxId: sandboxes.web }), ["running", "created"]],
    ["a label", () => ({ labelSelector: { "io.kubernetes.pod.uid": "u-job" } }), ["exited"]],
    [
      "a container's name",
      () => ({ labelSelector: { "io.kubernetes.container.name": "side" } }),
      ["created"],
    ],
    [
      "two labels that no one has both of",
      () => ({
        labelSelector: { "io.kubernetes.pod.uid": "u-job", "io.kubernetes.pod.namespace": "shop" },
      }),
      [],
    ],
    [
      "all together",
      ({ containers, sandboxes }) => ({
        id: containers.exited,
        state: { state: CONTAINER_EXITED },
        podSandboxId: sandboxes.job,
        labelSelector: { "io.kubernetes.pod.name": "job-1" },
      }),
      ["exited"],
    ],
  ])("containers by %s, listed and streamed alike", async (_name, filterOf, expected) => {
    const sets = await twoPods();
    const filter = filterOf(sets);
    const wanted = expected.map((name) => sets.containers[name]);
    const { containers } = await sets.bare.listContainers({ filter });
    expect(containers.map(({ id }) => id)).toEqual(wanted);
    const streamed: string[] = [];
    for await (const part of sets.bare.streamContainers({ filter }))
      streamed.push(...part.containers.map(({ id }) => id));
    expect(streamed).toEqual(wanted);
  });

  it.each<
    [string, (sets: Sets) => DeepPartial<{ id: string; state: object; labelSelector: object }>, string[]]
  >([
    ["none", () => ({}), ["web", "job"]],
    ["an ID", ({ sandboxes }) => ({ id: sandboxes.job }), ["job"]],
    ["ready", () => ({ state: { state: PodSandboxState.SANDBOX_READY } }), ["web"]],
    ["not ready", () => ({ state: { state: PodSandboxState.SANDBOX_NOTREADY } }), ["job"]],
    ["a label", () => ({ labelSelector: { "io.kubernetes.pod.name": "web-1" } }), ["web"]],
    ["a label of no container", () => ({ labelSelector: { app: "unknown" } }), []],
  ])("sandboxes by %s", async (_name, filterOf, expected) => {
    const sets = await twoPods();
    const { items } = await sets.bare.listPodSandbox({ filter: filterOf(sets) as object });
    expect(items.map(({ id }) => id)).toEqual(
      expected.map((name) => sets.sandboxes[name as keyof Sets["sandboxes"]]),
    );
  });
});

describe("answers", () => {
  it("are as big as a real runtime's, and not encoded again", async () => {
    const { runtime } = await twoPods();
    const bytes = new ListBytes();
    const containers = [...runtime.containers.values()];
    const first = bytes.containers(containers);
    expect(first.length / containers.length).toBeGreaterThan(1_350);
    expect(first.length / containers.length).toBeLessThan(1_650);
    const sandboxes = bytes.sandboxes([...runtime.sandboxes.values()]);
    expect(sandboxes.length / 2).toBeGreaterThan(1_100);
    expect(sandboxes.length / 2).toBeLessThan(1_300);
    expect(bytes.containers(containers)).toEqual(first);
    runtime.exit(containers[0]!.id, 1);
    expect(bytes.containers(containers)).not.toEqual(first);
  });

  it("answer NOT_FOUND of what is not there", async () => {
    const { bare } = await serve();
    const missing = { code: status.NOT_FOUND };
    await expect(bare.containerStatus({ containerId: "x" })).rejects.toMatchObject(missing);
    await expect(bare.podSandboxStatus({ podSandboxId: "x" })).rejects.toMatchObject(missing);
    await expect(bare.containerStats({ containerId: "x" })).rejects.toMatchObject(missing);
    await expect(bare.podSandboxStats({ podSandboxId: "x" })).rejects.toMatchObject(missing);
  });

  it("answer UNIMPLEMENTED of streamed lists that are switched off", async () => {
    const { bare } = await serve({ streamsLists: false });
    const read = async () => {
      for await (const _ of bare.streamPodSandboxes({}));
    };
    await expect(read()).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
  });

  it("name both addresses of a pod that has two, none of one whose sandbox has ended", async () => {
    const { bare, sandboxes } = await twoPods();
    const networkOf = async (podSandboxId: string) =>
      (await bare.podSandboxStatus({ podSandboxId })).status?.network;
    expect(await networkOf(sandboxes.web)).toEqual({
      ip: "10.244.0.2",
      additionalIps: [{ ip: "fd00:10:244::2" }],
    });
    expect(await networkOf(sandboxes.job)).toEqual({ ip: "", additionalIps: [] });
  });

  it("stop a container over the wire, and show when it ended", async () => {
    const { bare, containers } = await twoPods();
    await bare.stopContainer({ containerId: containers.running, timeout: 30n });
    const { status: ended } = await bare.containerStatus({ containerId: containers.running });
    expect(ended).toMatchObject({ state: ContainerState.CONTAINER_EXITED, exitCode: 143, reason: "Error" });
    expect(ended!.startedAt).toBeGreaterThanOrEqual(ended!.createdAt);
    expect(ended!.finishedAt).toBeGreaterThan(ended!.startedAt);
    expect(ended!.labels).toMatchObject({ "io.kubernetes.pod.uid": "u-web" });
  });

  it("have plausible figures: of what ran, for as long as it ran", async () => {
    const { bare, containers, sandboxes } = await twoPods();
    const cpuOf = async (containerId: string) => (await bare.containerStats({ containerId })).stats!.cpu!;
    // Two seconds at a tenth of a core, less the nanoseconds by which the start was later.
    const used = (await cpuOf(containers.running)).usageCoreNanoSeconds!.value;
    expect(used).toBeGreaterThan(199_999_000n);
    expect(used).toBeLessThanOrEqual(200_000_000n);
    expect((await cpuOf(containers.created)).usageCoreNanoSeconds!.value).toBe(0n);
    expect((await cpuOf(containers.exited)).usageCoreNanoSeconds!.value).toBeLessThanOrEqual(100_000_000n);
    expect((await bare.listContainerStats({})).stats.map(({ attributes }) => attributes!.id)).toEqual([
      containers.running,
    ]);
    const { stats } = await bare.listPodSandboxStats({});
    expect(stats.map(({ attributes }) => attributes!.id)).toEqual([sandboxes.web]);
    expect(stats[0]!.linux!.cpu!.usageNanoCores!.value).toBe(100_000_000n);
  });

  it("have figures of containers that have started in this very millisecond", async () => {
    const clock = new FakeClock();
    const runtime = new SimulatedRuntime({ clock });
    const sandbox = runtime.runSandbox(web);
    for (let at = 0; at < 30; at++) runtime.runContainer(sandbox, { name: `app-${at}` });
    const { bare } = await serve({ runtime, clock });
    const { stats } = await bare.listContainerStats({});
    expect(stats).toHaveLength(30);
    expect(stats.every(({ cpu }) => cpu!.usageCoreNanoSeconds!.value === 0n)).toBe(true);
  });
});
