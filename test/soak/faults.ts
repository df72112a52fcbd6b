import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import type { SimulatedCri } from "@nodekeeper/testing";
import type { TestCluster } from "../support/cluster.ts";
import type { SmallDisk } from "../support/small-disk.ts";
import type { Peers, Speaker } from "./peers.ts";
import type { SoakedAgent } from "./soaked-agent.ts";

/** What faults are done to. */
export interface Place {
  cluster: TestCluster;
  cri: SimulatedCri;
  peers: Peers;
  agent: SoakedAgent;
  disk: SmallDisk | undefined;
  /** Spans of `performance.now()` of which the agent's records are lost by contract: why pods were evicted is not known. */
  unrecorded: { from: number; to: number }[];
}

/** The soak's chance: the same one for the same seed. */
export interface Chance {
  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number;
  oneOf<T>(these: readonly T[]): T;
}

/** One kind of fault. */
export interface FaultKind {
  name: string;
  /** How often it is drawn, against the others. */
  weight: number;
  killsAgent?: true;
  needsDisk?: true;
  /** Resolves when it is over. */
  run(place: Place, chance: Chance): Promise<void>;
}

const sleep = (ms: number) => systemClock.sleep(ms);
const reporters = ({ peers }: Place) => peers.speakers.filter(({ kind }) => kind === "reporter");
const drivers = ({ peers }: Place) => peers.speakers.filter(({ kind }) => kind === "driver");
const everyone = ({ peers }: Place) => [...peers.speakers, peers.eviction];

/** All faults. One is over before the next begins; plugins continue to report meanwhile. */
export const faultKinds: readonly FaultKind[] = [
  {
    name: "agent killed",
    weight: 2,
    killsAgent: true,
    async run({ agent }, chance) {
      await agent.kill();
      await sleep(chance.between(0, 2_000));
      agent.start();
      // Half of them while it starts.
      await sleep(chance.between(50, 1_000));
      if (chance.between(0, 1) === 1) await agent.kill();
      agent.start();
      await agent.untilReady();
    },
  },
  {
    name: "reporter killed",
    weight: 3,
    run: (place, chance) => killed(chance.oneOf(reporters(place)), chance),
  },
  { name: "driver killed", weight: 3, run: (place, chance) => killed(chance.oneOf(drivers(place)), chance) },
  { name: "eviction plugin killed", weight: 1, run: ({ peers }, chance) => killed(peers.eviction, chance) },
  {
    name: "plugin stopped",
    weight: 4,
    async run(place, chance) {
      const plugin = chance.oneOf(everyone(place));
      plugin.signal("SIGSTOP");
      if ("say" in plugin) (plugin as Speaker).say({});
      await sleep(chance.between(500, 8_000));
      plugin.signal("SIGCONT");
    },
  },
  {
    name: "big reports",
    weight: 3,
    async run(place, chance) {
      chance.oneOf(reporters(place)).say({ burst: 20, bulk: chance.between(100_000, 1_000_000) });
      await sleep(2_000);
    },
  },
  {
    name: "many reports",
    weight: 3,
    async run(place, chance) {
      chance.oneOf(reporters(place)).say({ burst: chance.between(500, 3_000) });
      await sleep(2_000);
    },
  },
  {
    name: "many device changes",
    weight: 3,
    async run(place, chance) {
      chance.oneOf(drivers(place)).say({ burst: chance.between(5, 50), devices: chance.between(0, 600) });
      await sleep(2_000);
    },
  },
  {
    name: "API server refuses, cuts or hangs",
    weight: 2,
    async run({ cluster }, chance) {
      const fault = chance.oneOf([{ status: 503 }, "cut", "hang"] as const);
      cluster.fault = () => fault;
      await sleep(chance.between(500, 10_000));
      cluster.fault = () => undefined;
    },
  },
  {
    name: "API server down",
    weight: 1,
    async run({ cluster }, chance) {
      await cluster.server.stop();
      await sleep(chance.between(500, 10_000));
      await cluster.server.start();
    },
  },
  {
    name: "container runtime down",
    weight: 1,
    async run({ cri }, chance) {
      await cri.stop();
      await sleep(chance.between(500, 5_000));
      await cri.start();
    },
  },
  {
    // What was decided then is kept in memory: a kill before the disk has room again would lose why, by contract.
    name: "disk full",
    weight: 2,
    needsDisk: true,
    async run({ disk, agent }, chance) {
      disk?.fill();
      await sleep(chance.between(1_000, 10_000));
      disk?.empty();
      await agent.untilReady();
    },
  },
  {
    name: "agent killed, started on a full disk, killed",
    weight: 2,
    needsDisk: true,
    killsAgent: true,
    run: (place, chance) =>
      startedWithout(place, chance, {
        impair: () => place.disk?.fill(),
        repair: () => place.disk?.empty(),
      }),
  },
  {
    name: "agent killed, started on a read-only disk, killed",
    weight: 2,
    needsDisk: true,
    killsAgent: true,
    run: (place, chance) =>
      startedWithout(place, chance, {
        impair: () => place.disk?.makeReadOnly(),
        repair: () => place.disk?.makeWritable(),
      }),
  },
  {
    name: "state directory restored",
    weight: 2,
    needsDisk: true,
    killsAgent: true,
    async run(place, chance) {
      const { disk, agent, unrecorded } = place;
      const copy = mkdtempSync(join(tmpdir(), "nk-soak-copy-"));
      const from = performance.now();
      await agent.kill();
      disk?.copyTo(copy);
      agent.start();
      await agent.untilReady();
      // What was recorded since the copy is lost with it.
      await startedWithout(place, chance, { impair: () => {}, repair: () => disk?.restore(copy) });
      unrecorded.push({ from, to: performance.now() });
      rmSync(copy, { recursive: true });
    },
  },
  {
    // What it published under its earlier name must neither outrank it nor stay.
    name: "reporter renamed",
    weight: 2,
    async run(place, chance) {
      const reporter = chance.oneOf(reporters(place));
      await reporter.kill();
      reporter.rename(`${chance.oneOf(["a", "z"])}${chance.between(0, 999)}-${reporter.name}`);
      reporter.say({});
      await sleep(chance.between(0, 2_000));
      reporter.start();
    },
  },
];

/** Starts the agent again on a state directory that can't be written, and after a while on one that can. */
async function startedWithout(
  { agent, unrecorded }: Place,
  chance: Chance,
  { impair, repair }: { impair: () => void; repair: () => void },
): Promise<void> {
  const from = performance.now();
  await agent.kill();
  impair();
  agent.start();
  await sleep(chance.between(2_000, 10_000));
  await agent.kill();
  repair();
  unrecorded.push({ from, to: performance.now() });
  agent.start();
  await agent.untilReady();
}

async function killed(plugin: { kill(): Promise<void>; start(): void }, chance: Chance): Promise<void> {
  await plugin.kill();
  await sleep(chance.between(0, 4_000));
  plugin.start();
}
