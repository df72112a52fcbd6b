import { FakeClock, NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import type { PodCounters, PodReadings, Reading } from "../host/index.ts";
import type { PodStats } from "../runtime/index.ts";
import { PodUsages } from "./pod-usages.ts";

const never = new AbortController().signal;

/** A machine whose pods a test sets: memory and CPU seconds of cgroups, and the runtime's statistics. */
class Machine {
  readonly clock = new FakeClock(1_000_000);
  cgroups: Record<string, { memory?: number; cpuSeconds?: number }> | undefined = {};
  memoryError: NodekeeperError | undefined;
  running: string[] = [];
  stats: () => Promise<PodStats[]> = async () => [];
  reads = 0;
  calls = 0;
  readonly usages = new PodUsages({
    cgroups: {
      pods: async () => {
        this.reads++;
        if (this.memoryError) return { state: "failed", at: this.clock.monotonic(), error: this.memoryError };
        return this.#reading((uses) => ({ memory: { workingSetBytes: uses.memory } }), "pods");
      },
      counters: async () => this.#reading(({ cpuSeconds }) => ({ cpuSeconds, pids: 1 }) as PodCounters),
    } as unknown as PodReadings,
    runtimeStats: {
      podStats: () => {
        this.calls++;
        return this.stats();
      },
    },
    runningPods: () => this.running,
    clock: this.clock,
  });

  async read() {
    const { items, problems } = await this.usages.read(never);
    return { items: Object.fromEntries(items.map(({ uid, ...usage }) => [uid, usage])), problems };
  }

  /** @param name of the member of the value that has the pods */
  #reading(of: (uses: { memory?: number; cpuSeconds?: number }) => object, name?: string): Reading<never> {
    const at = this.clock.monotonic();
    if (!this.cgroups)
      return { state: "failed", at, error: new NodekeeperError("forbidden", "not readable") };
    const pods = new Map(Object.entries(this.cgroups).map(([uid, uses]) => [uid, of(uses)]));
    return { state: "read", at, value: (name ? { [name]: pods } : pods) as never, problems: [] };
  }

  runtimePod(
    uid: string,
    more: { coreSeconds?: number; cores?: number; bytes?: bigint },
    ageMs = 0,
  ): PodStats {
    const takenAt = BigInt(this.clock.now() - ageMs) * 1_000_000n;
    const nano = (value: number | undefined) => (value === undefined ? undefined : BigInt(value * 1e9));
    return {
      uid,
      cpu: {
        takenAt,
        usageCoreNanoSeconds: nano(more.coreSeconds),
        usageNanoCores: nano(more.cores),
      },
      memory: { takenAt, workingSetBytes: more.bytes, usageBytes: undefined, rssBytes: undefined },
      containers: [],
    };
  }
}

const FIRST = { cpuUnknown: expect.stringMatching(/two readings/) };

describe("what pods use", () => {
  it("comes from cgroups: memory at once, CPU from the second reading within a minute", async () => {
    const machine = new Machine();
    machine.cgroups = { a: { memory: 7, cpuSeconds: 10 } };
    expect((await machine.read()).items).toEqual({ a: { memoryBytes: 7, ...FIRST } });
    await machine.clock.step(10_000);
    machine.cgroups = { a: { memory: 8, cpuSeconds: 12.5 } };
    expect((await machine.read()).items).toEqual({ a: { memoryBytes: 8, cpu: 0.25 } });
    await machine.clock.step(60_001);
    expect((await machine.read()).items).toEqual({ a: { memoryBytes: 8, ...FIRST } });
  });

  it("is read once in five seconds, and not at all while nobody asks", async () => {
    const machine = new Machine();
    await machine.clock.step(3_600_000);
    expect(machine.reads).toBe(0);
    await Promise.all([machine.read(), machine.read()]);
    await machine.read();
    expect(machine.reads).toBe(1);
    await machine.clock.step(5_001);
    await machine.read();
    expect(machine.reads).toBe(2);
  });

  it("says what is unknown, and never 0 instead; a cgroup that was created again begins anew", async () => {
    const machine = new Machine();
    machine.cgroups = { a: { cpuSeconds: 10 }, b: { memory: 1 } };
    const reported = "its cgroup does not report it";
    expect((await machine.read()).items).toEqual({
      a: { memoryUnknown: reported, ...FIRST },
      b: { memoryBytes: 1, cpuUnknown: reported },
    });
    await machine.clock.step(6_000);
    machine.cgroups = { a: { memory: 2, cpuSeconds: 1 } };
    expect((await machine.read()).items).toEqual({ a: { memoryBytes: 2, ...FIRST } });
  });

  it("comes from the runtime for running pods without a cgroup, and only then", async () => {
    const machine = new Machine();
    machine.cgroups = { a: { memory: 7, cpuSeconds: 10 } };
    machine.running = ["a"];
    machine.stats = async () => [
      machine.runtimePod("a", { cores: 9, bytes: 9n }),
      machine.runtimePod("b", { cores: 0.5, bytes: 64n }),
    ];
    await machine.read();
    expect(machine.calls).toBe(0);
    machine.running = ["a", "b"];
    await machine.clock.step(6_000);
    expect((await machine.read()).items).toMatchObject({
      a: { memoryBytes: 7 },
      b: { cpu: 0.5, memoryBytes: 64 },
    });
    expect(machine.calls).toBe(1);
  });

  it("of a runtime without current CPU usage comes from its CPU time, and old figures are none", async () => {
    const machine = new Machine();
    machine.running = ["b", "old"];
    let coreSeconds = 100;
    machine.stats = async () => [
      machine.runtimePod("b", { coreSeconds, bytes: 1n }),
      machine.runtimePod("old", { cores: 1, bytes: 1n }, 30_001),
    ];
    const unknown = "the container runtime's figure is not of the last 30 s";
    expect((await machine.read()).items).toEqual({
      b: { memoryBytes: 1, ...FIRST },
      old: { cpuUnknown: unknown, memoryUnknown: unknown },
    });
    await machine.clock.step(20_000);
    coreSeconds = 110;
    expect((await machine.read()).items).toMatchObject({ b: { cpu: 0.5 } });
  });

  it("of a runtime that has not measured again since the last reading is still known", async () => {
    const machine = new Machine();
    machine.running = ["b"];
    const takenAt = machine.clock.now();
    machine.stats = async () => {
      // The runtime measures every ten seconds.
      const ageMs = (machine.clock.now() - takenAt) % 10_000;
      const coreSeconds = (machine.clock.now() - ageMs - takenAt) / 2_000;
      return [machine.runtimePod("b", { coreSeconds, bytes: 1n }, ageMs)];
    };
    const cpus: unknown[] = [];
    for (let read = 0; read < 8; read++) {
      cpus.push((await machine.read()).items.b?.cpu);
      await machine.clock.step(5_001);
    }
    expect(cpus).toEqual([undefined, undefined, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
  });

  it("of a runtime whose current CPU usage is 0 comes from its CPU time: 0 may be unknown", async () => {
    const machine = new Machine();
    machine.running = ["b"];
    let coreSeconds = 100;
    machine.stats = async () => [machine.runtimePod("b", { coreSeconds, cores: 0, bytes: 1n })];
    expect((await machine.read()).items).toEqual({ b: { memoryBytes: 1, ...FIRST } });
    await machine.clock.step(20_000);
    coreSeconds = 110;
    expect((await machine.read()).items).toMatchObject({ b: { cpu: 0.5 } });
  });

  it("says why one of two readings of cgroups failed", async () => {
    const machine = new Machine();
    machine.cgroups = { a: { cpuSeconds: 10 } };
    machine.memoryError = new NodekeeperError("deadline", "reading memory of pods took too long");
    expect((await machine.read()).items).toEqual({
      a: { memoryUnknown: "reading memory of pods took too long", ...FIRST },
    });
  });

  it("names the sources that can't be read", async () => {
    const machine = new Machine();
    machine.cgroups = undefined;
    machine.running = ["b"];
    machine.stats = async () => Promise.reject(new NodekeeperError("unsupported", "an older runtime"));
    expect(await machine.read()).toEqual({ items: {}, problems: ["not readable", "an older runtime"] });
  });
});
