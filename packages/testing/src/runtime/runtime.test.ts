import { statSync } from "node:fs";
import { status } from "@grpc/grpc-js";
import { type ContainerEventType, ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { FakeClock, stopped } from "@nodekeeper/core/lib";
import { afterEach, describe, expect, it } from "vitest";
import { type SimulatedCriOptions, SimulatedRuntime } from "../index.ts";
import { eventually, until } from "../until.ts";
import { simulations } from "./testing/serve.ts";

const pod = { uid: "u1", name: "p1", namespace: "default" };
const { serve, end } = simulations();
afterEach(end);

describe("SimulatedRuntime", () => {
  it("emits what happens to a pod in the order of a real runtime", () => {
    const emitted: string[] = [];
    const names = ["created", "started", "stopped", "deleted"];
    const runtime = new SimulatedRuntime({
      clock: new FakeClock(),
      onEvent: ({ id, type }) => emitted.push(`${names[type]} ${id === sandbox() ? "sandbox" : "container"}`),
    });
    const sandbox = () => first || [...runtime.sandboxes.keys()][0];
    let first = "";
    first = runtime.runSandbox(pod);
    runtime.runContainer(first, { name: "app" });
    runtime.removeSandbox(first);
    expect(emitted).toEqual([
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
    expect(() => runtime.startContainer("absent")).toThrow(/not there/);
    expect(() => runtime.createContainer("absent", { name: "app" })).toThrow(/not there/);
  });
});

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
    expect(await client.listPod("absent", never)).toBeUndefined();
    expect(await client.listPod("u1", never)).toEqual(listed);
    await client.stopContainer("absent", 0, never);
  });

  it("streams lists where it is configured to", async () => {
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
      await eventually(() => expect(cri.listeners).toBe(1));
      runtime.runSandbox(pod);
    }
    expect(await got).toBe(expected);
    await eventually(() => expect(cri.listeners).toBe(0));
  });

  it("loses, doubles, reorders and replays events as configured", async () => {
    const types = async (eventFaults: SimulatedCriOptions["eventFaults"], before = 0) => {
      const { runtime, bare, cri } = await serve({ eventFaults: eventFaults ?? {} });
      for (let at = 0; at < before; at++) runtime.runSandbox(pod);
      const seen: { containerId: string; containerEventType: ContainerEventType }[] = [];
      const stop = new AbortController();
      const reading = (async () => {
        for await (const event of bare.getContainerEvents({}, { signal: stop.signal })) seen.push(event);
      })().catch(() => {});
      await eventually(() => expect(cri.listeners).toBe(1));
      const sandbox = runtime.runSandbox(pod);
      runtime.stopSandbox(sandbox);
      // The events of another pod come after all of these.
      cri.eventFaults = {};
      const last = runtime.runSandbox({ ...pod, uid: "last" });
      await until(
        "the last pod's events",
        () => seen.filter(({ containerId }) => containerId === last).length === 2,
      );
      stop.abort();
      await reading;
      return seen
        .filter(({ containerId }) => containerId !== last)
        .map(({ containerEventType }) => containerEventType);
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
        ? { code: status.INTERNAL, message: "shim has exited" }
        : undefined;
    await expect(client.podStatus(listed!, never)).rejects.toThrow(/PodSandboxStatus.*shim has exited/);
    cri.faults = ({ method }) => (method === "ListContainers" ? { hang: true } : undefined);
    const stop = new AbortController();
    const hung = client.listPods(stop.signal);
    await client.version(never);
    stop.abort(stopped("enough"));
    await expect(hung).rejects.toMatchObject({ code: "stopped" });
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
    await eventually(() => expect(cri.listeners).toBe(1));
    await cri.restart(() => runtime.exit(id, 1));
    expect(await ended).toBe("unavailable");
    const listed = await eventually(() => client.listPods(never));
    expect(listed).toMatchObject([{ containers: [{ state: "exited" }] }]);
  });
});
