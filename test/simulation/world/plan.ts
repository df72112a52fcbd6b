import { seededRandom } from "../../../packages/testing/src/runtime/seeded-random.ts";
import type { Machine } from "../machine/machine.ts";
import {
  drawBindingFaults,
  drawDiskFaults,
  drawFaults,
  drawHostFaults,
  drawPluginFaults,
  drawPoolFaults,
  drawPowerFaults,
  drawSecondAgents,
  drawStopFaults,
  type FaultRates,
  type OwnRates,
} from "./faults.ts";
import type { StoppedPods } from "./node.ts";
import { drawSettings, type Settings, stoppingRules } from "./settings.ts";

/** What a world is made of, drawn from its seed. */
export interface Plan {
  stormMs: number;
  calmMs: number;
  /** Most pods of a workload. */
  mostReplicas: number;
  consumers: number;
  faults: FaultRates;
  reporters: number;
  evictionPlugins: number;
  drivers: number;
  /** Whether there are devices with binding conditions. */
  hasBinding: boolean;
  /** Whether every other device may be allocated to several claims at once. */
  hasShares: boolean;
  /** Whether there is another node whose agent publishes the same pools of devices. */
  hasPools: boolean;
  /** Whether the agent's log of lifecycle events is so short that cursors fall off it. */
  hasShortLog: boolean;
  /** Whether the agent exports its records to a collector. */
  hasArchive: boolean;
  /** With which the agent is started first. */
  settings: Settings;
  /** Undefined if the agent stops no containers. */
  stopped: (StoppedPods & { settings: Pick<Settings, "killer" | "killerRules"> }) | undefined;
  /** Whether a second agent takes over from the first. */
  rollingUpdate: boolean;
}

/** How many lifecycle events a short log has: the least that the setting may be. */
export const SHORT_LOG = 100;

/** What is different from the plan that is drawn from a seed. */
export type PlanChanges = Partial<Omit<Plan, "faults">> & {
  faults?: Partial<FaultRates>;
  /** Whether the world is small, has a short storm, and ends with its calm. */
  isQuick?: boolean;
};

// Long enough for everything that must come true after a storm. For worlds with drivers, whose calls may hang for
// 40 s, or binding conditions, and for one in `LONG_CALM_EVERY` others. The rest end before anything that takes a
// minute is judged.
export const CALM_MS = 70_000;
const SHORT_CALM_MS = 40_000;
const LONG_CALM_EVERY = 4;
// Extends the calm if messages may take longer than `SOON_MS`: a write whose response was lost is repaired a minute
// later, when it can no longer arrive. Otherwise the repair is within the calm.
const LATE_WRITE_MS = 30_000;
const SOON_MS = 1_000;

// When the calm begins, an agent that was started on a read-only disk is restarted, and one of two agents ends.
const RESTART_MS = 10_000;

// An agent gives a watch up after 180 s without a bookmark, and opens it again.
const STALL_MS = 190_000;

/** Returns whether watches stall in a world. */
export function stalls({ faults }: Pick<Plan, "faults">): boolean {
  return Number.isFinite(faults.stalledWatches);
}

/** How long a watch of the agent may say nothing of a change before the agent can notice, in milliseconds. */
export function unseenMs(plan: Pick<Plan, "faults">): number {
  return stalls(plan) ? STALL_MS : 0;
}

// Share of the worlds with few of each kind and a short storm. Most defects need no more, and such a world costs a third.
const SMALL = 0.75;

// Offsets from a world's seed to the seeds of parts that are drawn independently.
const POWER = 1_000_003;
const DISK = 2_000_003;
const PLUGINS = 3_000_017;
const HOST = 4_000_037;
const SECOND_AGENT = 5_000_011;
const STOP = 7_000_003;
const BINDING = 8_000_009;
const REALLOCATION = 11_000_027;
const POOLS = 9_000_011;
const SHARES = 12_000_017;
const POOL_FAULTS = 10_000_019;
const SHORT_LOG_SEED = 13_000_027;
const ARCHIVE = 14_000_029;

// Share of the worlds in which the agent stops containers.
const STOPPING = 0.25;

// Share of the worlds in which devices have binding conditions.
const BINDING_SHARE = 0.2;

// Share of the worlds in which claims can have shares of a device.
const SHARES_SHARE = 0.3;

// Share of the worlds whose agent exports its records. Their calm is long: a collector that was away is tried again after
// a minute at most.
const ARCHIVE_SHARE = 0.15;

// Share of the worlds whose log of lifecycle events is short, and how often consumers are killed in them.
const SHORT_LOG_SHARE = 0.2;
const SHORT_LOG_KILLS_MS = 20_000;

// Share of the small worlds without other devices and without an ending that have pools beyond the node: about 11 % of
// all worlds.
const POOLS_SHARE = 0.5;
// Factor by which the storm of worlds with pools is longer: Leases are renewed every 10 s and expire after 40 s.
const POOLS_STORM = 3;
const NEVER = Number.POSITIVE_INFINITY;
// Short, so that the clock is stepped while the agents watch a Lease whose holder no longer runs.
const POOLS_WALL_STEPS_MS = 12_000;
// A killed holder of a Lease is replaced within two minutes, also one that was killed last. Until it publishes: 160 s.
const POOLS_CALM_MS = 160_000;

/**
 * Draws the plan of a world from its seed. Also returns the random generator for the outcomes of StopContainer calls,
 * which continues after the numbers drawn for the plan.
 */
export function drawPlan(
  machine: Machine,
  seed: number,
  isQuick: boolean,
): { plan: Plan; stopRandom: () => number } {
  const stopRandom = seededRandom(seed + STOP);
  const stopped = drawStopped(stopRandom);
  const drawn = draw(machine, seed, isQuick, {
    ...drawPowerFaults(seededRandom(seed + POWER)),
    ...drawPluginFaults(seededRandom(seed + PLUGINS)),
    ...drawDiskFaults(seededRandom(seed + DISK)),
    ...drawHostFaults(seededRandom(seed + HOST)),
    ...drawSecondAgents(seededRandom(seed + SECOND_AGENT)),
    ...drawStopFaults(stopRandom),
    ...drawBindingFaults(seededRandom(seed + REALLOCATION)),
    ...drawPoolFaults(seededRandom(seed + POOL_FAULTS)),
  });
  return { plan: { ...drawn, stopped }, stopRandom };
}

function drawStopped(random: () => number): Plan["stopped"] {
  if (random() >= STOPPING) return undefined;
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)]!;
  const restartPolicy = () => pick(["Always", "Always", "OnFailure", "Never"] as const);
  const isByRules = random() < 0.4;
  return {
    settings: isByRules
      ? { killer: "evictionApi", killerRules: pick(stoppingRules) }
      : { killer: "containerStop", killerRules: [] },
    restartPolicies: { web: restartPolicy(), db: restartPolicy() },
    helped: ["web", "db"].filter(() => random() < 0.5),
  };
}

function draw(machine: Machine, seed: number, isQuick: boolean, drawn: OwnRates): Omit<Plan, "stopped"> {
  const isSmall = machine.chance(SMALL) || isQuick;
  const most = isSmall ? 2 : 4;
  const stormMs = machine.between(10, isQuick ? 20 : isSmall ? 40 : 75) * 1_000;
  const faults = { ...drawFaults(machine), ...drawn };
  const isLate = faults.slow > 0 && faults.slowestMs > SOON_MS;
  const plan = {
    stormMs,
    mostReplicas: machine.between(1, most),
    consumers: machine.between(1, 2),
    faults,
    reporters: machine.between(1, most - 1),
    evictionPlugins: Math.max(
      machine.between(1, most - 1),
      Number.isFinite(faults.pluginReplacements) ? 2 : 1,
    ),
    drivers: machine.between(0, isSmall ? 1 : 2),
    hasBinding: seededRandom(seed + BINDING)() < BINDING_SHARE,
    hasShares: seededRandom(seed + SHARES)() < SHARES_SHARE,
    hasPools: false,
    hasShortLog: seededRandom(seed + SHORT_LOG_SEED)() < SHORT_LOG_SHARE,
    hasArchive: !isQuick && seededRandom(seed + ARCHIVE)() < ARCHIVE_SHARE,
    settings: drawSettings(machine),
    rollingUpdate: Number.isFinite(faults.secondAgents) && machine.chance(0.6),
  };
  if (plan.hasShortLog) faults.consumerKills = Math.min(faults.consumerKills, SHORT_LOG_KILLS_MS);
  const isShort = plan.drivers === 0 && !plan.hasBinding && !plan.hasArchive && seed % LONG_CALM_EVERY !== 0;
  const mayHavePools =
    isSmall && !isQuick && plan.drivers === 0 && !plan.hasBinding && seed % LONG_CALM_EVERY !== 0;
  const poolRandom = seededRandom(seed + POOLS);
  if (mayHavePools && poolRandom() < POOLS_SHARE) {
    if (poolRandom() < 0.5) faults.wallSteps = POOLS_WALL_STEPS_MS;
    // As often in a storm as in other worlds. In half of them, elections are disturbed by the faults of pools alone.
    faults.agentKills *= POOLS_STORM;
    if (poolRandom() < 0.5)
      Object.assign(faults, { refusals: {}, lostRequests: 0, agentKills: NEVER, agentStops: NEVER });
    Object.assign(plan, {
      hasPools: true,
      stormMs: POOLS_STORM * stormMs,
      mostReplicas: 1,
      consumers: 1,
      reporters: 1,
      evictionPlugins: 1,
    });
  }
  const calmMs =
    (plan.hasPools ? POOLS_CALM_MS : isShort ? SHORT_CALM_MS : CALM_MS) +
    (isLate ? LATE_WRITE_MS : 0) +
    unseenMs({ faults }) +
    (Number.isFinite(Math.min(faults.readOnlyDisks, faults.secondAgents)) ? RESTART_MS : 0);
  return { ...plan, calmMs };
}
