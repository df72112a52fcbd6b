import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { createClient } from "nice-grpc";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  type ContainerEventType,
  ContainerState,
  RuntimeServiceDefinition,
} from "../../gen/runtime/v1/api.ts";
import { dialUnix } from "../../grpc/index.ts";
import { FakeClock, Registry, silentLogger, stopped, systemClock } from "../../lib/index.ts";
import { CriRuntime } from "../../runtime/index.ts";
import {
  everyday,
  type Scenario,
  ScenarioPlayer,
  SimulatedCri,
  type SimulatedCriOptions,
  SimulatedRuntime,
} from "../index.ts";

const pod = { uid: "u1", name: "p1", namespace: "default" };
const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

describe("SimulatedRuntime", () => {
  it("tells what happens to a pod in the order of a real runtime", () => {
    const told: string[] = [];
    const names = ["created", "started", "stopped", "deleted"];
    const runtime = new SimulatedRuntime({
      clock: new FakeClock(),
      onEvent: ({ id, type }) => told.push(`${names[type]} ${id === sandbox() ? "sandbox" : "container"}`),
    });
    const sandbox = () => first || [...runtime.sandboxes.keys()][0];
    let first = "";
    first = runtime.runSandbox(pod);
    runtime.runContainer(first, { name: "app" });
    runtime.removeSandbox(first);
    expect(told).toEqual([
      "created sandbox",
      "started sandbox",
      "created container",
      "started container",
      "stopped container",
      "stopped sandbox",
      "deleted container",
      "deleted sandbox",
    ]);
    expect(runtime.containers.size + runtime.sandboxes.size).toBe(0);
  });

  it.each([
    { stopAfterMs: 100, graceMs: 1_000, code: 143, tookMs: 100 },
    { stopAfterMs: 5_000, graceMs: 1_000, code: 137, tookMs: 1_000 },
    { stopAfterMs: 0, graceMs: 0, code: 137, tookMs: 0 },
  ])("a container that needs $stopAfterMs ms and gets $graceMs ms exits with $code", async (row) => {
    const clock = new FakeClock();
    const runtime = new SimulatedRuntime({ clock });
    const id = runtime.runContainer(runtime.runSandbox(pod), { name: "app", stopAfterMs: row.stopAfterMs });
    const stopping = runtime.stopContainer(id, row.graceMs);
    if (row.tookMs > 0) {
      await clock.step(row.tookMs - 1);
      expect(runtime.containers.get(id)?.state).toBe(ContainerState.CONTAINER_RUNNING);
      await clock.step(1);
    }
    await stopping;
    expect(runtime.containers.get(id)).toMatchObject({
      state: ContainerState.CONTAINER_EXITED,
      exitCode: row.code,
    });
  });

  it("starts a container once, and none that is not there", () => {
    const runtime = new SimulatedRuntime({ clock: new FakeClock() });
    const id = runtime.runContainer(runtime.runSandbox(pod), { name: "app" });
    expect(() => runtime.startContainer(id)).toThrow(/started before/);
    expect(() => runtime.startContainer("nobody")).toThrow(/not there/);
    expect(() => runtime.createContainer("nobody", { name: "app" })).toThrow(/not there/);
  });
});

/** The simulation on a real socket, the agent's own client and a bare one. */
async function serve(options: Partial<SimulatedCriOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "nksim-"));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const runtime = new SimulatedRuntime({ clock: systemClock });
  const cri = new SimulatedCri({ runtime, socket: join(folder, "cri.sock"), clock: systemClock, ...options });
  await cri.start();
  ends.push(() => cri.stop());
  const client = new CriRuntime({
    endpoint: cri.socket,
    clock: systemClock,
    logger: silentLogger,
    registry: new Registry(),
    settings: { callDeadlineMs: 2_000 },
  });
  ends.push(() => client[Symbol.dispose]());
  const channel = dialUnix(cri.socket, { maxReceiveBytes: 64 * 2 ** 20 });
  ends.push(() => channel.close());
  return { runtime, cri, client, bare: createClient(RuntimeServiceDefinition, channel) };
}

const never = new AbortController().signal;

describe("SimulatedCri", () => {
  it("is a runtime to the agent's client, on a socket that only its owner reaches", async () => {
    const { runtime, client, cri } = await serve();
    expect(statSync(cri.socket).mode & 0o777).toBe(0o600);
    const sandbox = runtime.runSandbox(pod);
    const id = runtime.runContainer(sandbox, { name: "app" });
    runtime.exit(id, 137, "OOMKilled");
    expect(await client.version(never)).toMatchObject({ runtimeName: "simulated" });
    const [listed] = await client.listPods(never);
    expect(listed).toMatchObject({ ...pod, containers: [{ id, name: "app", state: "exited" }] });
    expect(await client.podStatus(listed!, never)).toMatchObject({
      ips: ["10.244.0.2"],
      containers: [{ exitCode: 137, reason: "OOMKilled" }],
    });
    expect(await client.listPod("nobody", never)).toBeUndefined();
    expect(await client.listPod("u1", never)).toEqual(listed);
    await client.stopContainer("nobody", 0, never);
  });

  it("lists with as many bytes as a real one", async () => {
    const { runtime, bare } = await serve();
    const sandbox = runtime.runSandbox(pod);
    for (let at = 0; at < 3; at++) runtime.runContainer(sandbox, { name: `app-${at}` });
    let bytes = 0;
    const { containers } = await bare.listContainers({ filter: { podSandboxId: sandbox } });
    expect(containers).toHaveLength(3);
    const { ListBytes } = await import("./list-bytes.ts");
    bytes = new ListBytes().containers([...runtime.containers.values()]).length / 3;
    expect(bytes).toBeGreaterThan(1_200);
    expect(bytes).toBeLessThan(1_800);
  });

  it("streams lists where it is told to", async () => {
    const { runtime, client } = await serve({ streamsLists: true });
    for (let at = 0; at < 250; at++)
      runtime.runContainer(runtime.runSandbox({ ...pod, uid: `u${at}` }), { name: "app" });
    expect(await client.listPods(never)).toHaveLength(250);
  });

  it.each([
    ["on", "events"],
    ["unimplemented", "unsupported"],
    ["disabled", "an end"],
  ] as const)("with events %s gives %s", async (events, expected) => {
    const { runtime, client, cri } = await serve({ events });
    const got = (async () => {
      for await (const hint of client.hints(never)) return hint.podUid === "u1" ? "events" : "nonsense";
      return "an end";
    })().catch((error: { code: string }) => error.code);
    if (events === "on") {
      await vi.waitFor(() => expect(cri.listeners).toBe(1));
      runtime.runSandbox(pod);
    }
    expect(await got).toBe(expected);
    await vi.waitFor(() => expect(cri.listeners).toBe(0));
  });

  it("loses, doubles, reorders and replays events as it is told", async () => {
    const types = async (eventFaults: SimulatedCriOptions["eventFaults"], before = 0) => {
      const { runtime, bare, cri } = await serve({ eventFaults: eventFaults ?? {} });
      for (let at = 0; at < before; at++) runtime.runSandbox(pod);
      const seen: ContainerEventType[] = [];
      const stop = new AbortController();
      const reading = (async () => {
        for await (const event of bare.getContainerEvents({}, { signal: stop.signal }))
          seen.push(event.containerEventType);
      })().catch(() => {});
      await vi.waitFor(() => expect(cri.listeners).toBe(1));
      const sandbox = runtime.runSandbox(pod);
      runtime.stopSandbox(sandbox);
      await new Promise((resolve) => setTimeout(resolve, 100));
      stop.abort();
      await reading;
      return seen;
    };
    const [created, started, halted] = [0, 1, 2];
    expect(await types({})).toEqual([created, started, halted]);
    expect(await types({ lost: 1 })).toEqual([]);
    expect(await types({ doubled: 1 })).toEqual([created, created, started, started, halted, halted]);
    // The last has none that follows, and comes all the same.
    expect(await types({ reordered: 1 })).toEqual([started, created, halted]);
    expect(await types({ replayed: 10 }, 1)).toEqual([created, started, created, started, halted]);
  });

  it("fails, hangs and lies in single calls", async () => {
    const { runtime, cri, client } = await serve();
    const sandbox = runtime.runSandbox(pod);
    const [listed] = await client.listPods(never);
    cri.faults = ({ method, id, podUid }) =>
      method === "PodSandboxStatus" && id === sandbox && podUid === "u1"
        ? { code: status.INTERNAL, message: "shim is gone" }
        : undefined;
    await expect(client.podStatus(listed!, never)).rejects.toThrow(/PodSandboxStatus.*shim is gone/);
    cri.faults = ({ method }) => (method === "ListContainers" ? { hang: true } : undefined);
    await expect(client.listPods(never)).rejects.toMatchObject({ code: "deadline" });
    cri.faults = ({ method }) =>
      method === "ListContainers" ? { bytes: Buffer.from([0xff, 0xff, 0xff]) } : undefined;
    await expect(client.listPods(never)).rejects.toThrow(/ListContainers/);
    cri.faults = () => undefined;
    expect(await client.listPods(never)).toHaveLength(1);
  });

  it("comes back with the same containers after a restart", async () => {
    const { runtime, cri, client } = await serve();
    const sandbox = runtime.runSandbox(pod);
    const id = runtime.runContainer(sandbox, { name: "app" });
    await client.listPods(never);
    const ended = (async () => {
      for await (const _ of client.hints(never));
    })().catch((error: { code: string }) => error.code);
    await vi.waitFor(() => expect(cri.listeners).toBe(1));
    await cri.restart(() => runtime.exit(id, 1));
    expect(await ended).toBe("unavailable");
    const listed = await vi.waitFor(() => client.listPods(never), { timeout: 5_000 });
    expect(listed).toMatchObject([{ containers: [{ state: "exited" }] }]);
  });
});

describe("ScenarioPlayer", () => {
  const all: readonly Scenario[] = [
    ...everyday,
    { kind: "massRestart", everyMs: 70_000 },
    { kind: "sandboxFailure", everyMs: 30_000 },
  ];

  async function history(seed: number, minutes: number) {
    const clock = new FakeClock();
    const told: string[] = [];
    const runtime = new SimulatedRuntime({
      clock,
      onEvent: ({ id, type, pod: { name } }) => told.push(`${type} ${name} ${id.slice(0, 8)}`),
    });
    const player = new ScenarioPlayer({ runtime, scenarios: all, clock, seed });
    const controller = new AbortController();
    const running = player.run(controller.signal);
    for (let step = 0; step < minutes * 60; step++) await clock.step(1_000);
    controller.abort(stopped("enough"));
    await running;
    return { told, runtime, player };
  }

  it("plays the same history from the same seed, another from another", async () => {
    const first = await history(7, 3);
    expect((await history(7, 3)).told).toEqual(first.told);
    expect((await history(8, 3)).told).not.toEqual(first.told);
    expect(first.told.length).toBeGreaterThan(100);
  });

  it("leaves as many pods as are deployed, and nothing that piles up", async () => {
    const { runtime } = await history(1, 10);
    const pods = new Set([...runtime.sandboxes.values()].map(({ pod: { uid } }) => uid));
    expect(pods.size).toBeGreaterThanOrEqual(11);
    expect(pods.size).toBeLessThan(16);
    expect(runtime.containers.size).toBeLessThan(30);
  });

  it("runs pods from outside until they are removed", async () => {
    const { runtime, player } = await history(1, 0);
    player.admit({ ...pod, containers: [{ name: "app" }, { name: "side" }] });
    player.admit({ ...pod, containers: [{ name: "app" }] });
    const [sandbox] = runtime.sandboxesOf("u1");
    expect(runtime.containersOf(sandbox!.id)).toHaveLength(2);
    await player.removePod("u1", { gracePeriodSeconds: 0 });
    expect(runtime.sandboxesOf("u1")).toEqual([]);
  });
});
