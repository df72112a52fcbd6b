import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { SimulatedCri, type SimulatedCriOptions, SimulatedRuntime } from "../src/devcluster/index.ts";
import { Registry, silentLogger, stopped, systemClock } from "../src/lib/index.ts";
import { type LifecycleSettings, PodLifecycleEventGenerator } from "../src/lifecycle/index.ts";
import { CriRuntime, type RuntimeSettings } from "../src/runtime/index.ts";

const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Setup {
  cri?: Partial<SimulatedCriOptions>;
  client?: Partial<RuntimeSettings>;
  lifecycle?: Partial<LifecycleSettings>;
}

/** A simulated runtime on a real socket, the CRI client, and lifecycle. */
async function setUp(setup: Setup = {}) {
  const folder = mkdtempSync(join(tmpdir(), "nkfault-"));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const runtime = new SimulatedRuntime({ clock: systemClock });
  const socket = join(folder, "cri.sock");
  const cri = new SimulatedCri({
    runtime,
    socket,
    clock: systemClock,
    events: "unimplemented",
    ...setup.cri,
  });
  await cri.start();
  ends.push(() => cri.stop());
  const registry = new Registry();
  const common = { clock: systemClock, logger: silentLogger, registry };
  const client = new CriRuntime({ ...common, endpoint: socket, settings: setup.client ?? {} });
  ends.push(() => client[Symbol.dispose]());
  const lifecycle = new PodLifecycleEventGenerator({
    ...common,
    runtime: client,
    settings: { relistPeriodMs: 50, inspectionPatienceMs: 150, hintSettleMs: 100, ...setup.lifecycle },
  });
  const start = async () => {
    const controller = new AbortController();
    const running = lifecycle.run(controller.signal);
    ends.push(async () => {
      controller.abort(stopped("test is over"));
      await running;
    });
    await eventually(() => expect(lifecycle.statuses.uids()).toHaveLength(runtime.sandboxes.size));
  };
  const pod = (uid: string) => {
    const sandbox = runtime.runSandbox({ uid, name: `pod-${uid}`, namespace: "default" });
    return { sandbox, id: runtime.runContainer(sandbox, { name: "app" }) };
  };
  /** "Died <uid>" for containers, in order. */
  const told = () => {
    const words: string[] = [];
    for (let sequence = 1; sequence <= lifecycle.events.last; sequence++) {
      const event = lifecycle.events.get(sequence);
      if (event?.container?.kind === "container")
        words.push(`${event.type.replace("Container", "")} ${event.pod.uid}`);
    }
    return words;
  };
  return { runtime, cri, lifecycle, start, pod, told, health: () => lifecycle.healthCheck().check() };
}

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 10 });

describe("a runtime that", () => {
  it("hangs in the status of one pod: that pod is stale, the others are told, and it is when it answers", async () => {
    const { runtime, cri, start, pod, told, health, lifecycle } = await setUp();
    const [stuck, well] = [pod("stuck"), pod("well")];
    await start();
    cri.faults = ({ podUid, method }) =>
      podUid === "stuck" && method === "ContainerStatus" ? { delayMs: 1_500 } : undefined;
    runtime.exit(stuck.id, 1);
    runtime.exit(well.id, 2);
    await eventually(() => expect(told()).toEqual(["Died well"]));
    await eventually(() => expect(lifecycle.statuses.get("stuck").error?.message).toMatch(/no answer/));
    expect(health().ok).toBe(true);
    expect(health().message).toMatch(/1 /);
    cri.faults = () => undefined;
    await eventually(() => expect(told()).toEqual(["Died well", "Died stuck"]));
    expect(lifecycle.statuses.get("stuck").error).toBeUndefined();
  });

  it("hangs in a list: health says which call and for how long, and recovers", async () => {
    const { runtime, cri, start, pod, told, health } = await setUp({
      client: { callDeadlineMs: 300 },
      lifecycle: { unhealthyAfterMs: 500 },
    });
    const { id } = pod("a");
    await start();
    cri.faults = ({ method }) => (method === "ListContainers" ? { hang: true } : undefined);
    runtime.exit(id, 1);
    await eventually(() => expect(health()).toMatchObject({ ok: false, message: /ListContainers/ }));
    cri.faults = () => undefined;
    await eventually(() => expect(told()).toEqual(["Died a"]));
    expect(health().ok).toBe(true);
  });

  it.each([
    ["garbage", Buffer.from([0x0a, 0xff, 0xff, 0xff, 0x01, 0x00]), /ListContainers/],
    ["20 MiB", Buffer.alloc(20 * 2 ** 20), /ListContainers.*limit/],
    ["nothing at all, as one that has just come up", undefined, undefined],
  ])("answers a list with %s: nothing is believed that is not so", async (_name, bytes, message) => {
    const { runtime, cri, start, pod, told, health } = await setUp({ lifecycle: { unhealthyAfterMs: 300 } });
    const { id } = pod("a");
    await start();
    if (bytes) {
      cri.faults = ({ method }) => (method === "ListContainers" ? { bytes } : undefined);
      await eventually(() => expect(health()).toMatchObject({ ok: false, message }));
    } else {
      let lies = 1;
      cri.faults = ({ method }) =>
        method === "ListContainers" && lies-- > 0 ? { bytes: Buffer.alloc(0) } : undefined;
      await eventually(() => expect(lies).toBeLessThan(0));
    }
    expect(told()).toEqual([]);
    cri.faults = () => undefined;
    runtime.exit(id, 1);
    await eventually(() => expect(told()).toEqual(["Died a"]));
  });

  it("has 10,000 containers: a change among them is found", async () => {
    const { runtime, start, pod, told } = await setUp({
      lifecycle: { relistPeriodMs: 200, inspectionPatienceMs: 5_000 },
    });
    const ids: string[] = [];
    for (let at = 0; at < 1_000; at++) {
      const { sandbox } = pod(`p${at}`);
      for (let more = 0; more < 9; more++) ids.push(runtime.runContainer(sandbox, { name: `c${more}` }));
    }
    await start();
    runtime.exit(ids[5_000]!, 9);
    await eventually(() => expect(told()).toEqual(["Died p555"]));
  }, 30_000);

  it("tells 5,000 events a second: each change once, and the pods are listed on", async () => {
    const { runtime, cri, start, pod, told, health, lifecycle } = await setUp({ cri: { events: "on" } });
    const pods = Array.from({ length: 50 }, (_, at) => ({ uid: `p${at}`, ...pod(`p${at}`) }));
    await start();
    await eventually(() => expect(cri.listeners).toBe(1));
    const noisy = pods[0]!;
    for (let second = 0; second < 2; second++) {
      for (let burst = 0; burst < 50; burst++) {
        // Of 100 events most are of containers that come and go between two looks.
        for (let at = 0; at < 25; at++) {
          const id = runtime.createContainer(noisy.sandbox, { name: `short-${at}` });
          runtime.startContainer(id);
          runtime.exit(id, 0);
          runtime.removeContainer(id);
        }
        await systemClock.sleep(20);
      }
    }
    for (const { id } of pods) runtime.exit(id, 3);
    const died = () => told().filter((word) => word.startsWith("Died"));
    await eventually(() => expect(pods.filter(({ uid }) => !died().includes(`Died ${uid}`))).toEqual([]));
    for (const { uid } of pods.slice(1))
      expect(told().filter((word) => word === `Died ${uid}`)).toHaveLength(1);
    expect(health().ok).toBe(true);
    expect(lifecycle.events.last).toBeLessThan(10_000);
  }, 30_000);

  it.each([{ lost: 0.5 }, { doubled: 1 }, { reordered: 0.5 }, { replayed: 500 }])(
    "garbles its events (%o): each change is told once",
    async (eventFaults) => {
      const { runtime, start, pod, told } = await setUp({
        cri: { events: "on", eventFaults },
        lifecycle: { hintedRelistPeriodMs: 300, hintGraceMs: 50 },
      });
      const pods = Array.from({ length: 20 }, (_, at) => pod(`p${at}`));
      await start();
      for (const [at, { id }] of pods.entries()) runtime.exit(id, at);
      await eventually(() => expect(told()).toHaveLength(20));
      await systemClock.sleep(400);
      expect(new Set(told()).size).toBe(20);
      expect(told()).toHaveLength(20);
    },
  );

  it("restarts with and without events, and changes what it can: no restart of ours is needed", async () => {
    const { runtime, cri, start, pod, told } = await setUp({ cri: { events: "on" } });
    const { id, sandbox } = pod("a");
    await start();
    await eventually(() => expect(cri.listeners).toBe(1));
    await cri.restart(() => {
      runtime.exit(id, 1);
      cri.events = "unimplemented";
    });
    await eventually(() => expect(told()).toEqual(["Died a"]));
    await cri.restart(() => {
      cri.events = "on";
    });
    await eventually(() => expect(cri.listeners).toBe(1));
    runtime.runContainer(sandbox, { name: "app", attempt: 1 });
    await eventually(() => expect(told()).toEqual(["Died a", "Started a"]));
  });
});
