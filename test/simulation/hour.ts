import type { PodExplanation } from "@nodekeeper/api/records";
import { NODE } from "./world/api-server.ts";
import { Collector } from "./world/collector.ts";
import { noFaults } from "./world/faults.ts";
import type { Settings } from "./world/settings.ts";
import { read } from "./world/statements.ts";
import { World } from "./world/world.ts";

/** What is left of a node that lived for an hour. */
export interface Hour {
  node: string;
  /** Of each pod, what the node explained at the end of the hour. */
  explanations: PodExplanation[];
  /** Requests with exported records. */
  requests: Buffer[];
  /** When the last agent stopped, as RFC 3339. */
  stoppedAt: string;
  evictions: number;
  lives: number;
  faults: Readonly<Record<string, number>>;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const STORM_MS = 57 * MINUTE;
// Until then, nothing is exported.
const ARCHIVED_FROM_MS = STORM_MS / 4;
// Until evictions have ended, and their records are exported.
const CALM_MS = 3 * MINUTE;

const settings: Settings = {
  ...{ syncPeriodMs: 5_000, burst: 3, cooldownS: 5, transitionS: 20 },
  ...{ limitPerNode: 30, limitPerOwner: 0, limitWindowMs: 2 * MINUTE },
  ...{ dryRunPlugins: [], skipLabels: [], taintPrefix: "nodekeeper.dev" },
  killer: "evictionApi",
  killerRules: [],
};

// Faults that lead to records of all kinds. Power loss and unwritable disks are left out, because the node would lose
// the record of what it has exported.
const faults = {
  ...noFaults,
  ...{ agentKills: 2 * MINUTE, agentStops: 5 * MINUTE, killsAtEvictions: 0.05, killsAtWrites: 0.005 },
  ...{ lostRequests: 0.01, lostResponses: 0.02, apiOutages: 5 * MINUTE, cutWatches: MINUTE },
  ...{ budgetChanges: MINUTE, drains: 5 * MINUTE, forcedDeletions: MINUTE },
  ...{ pluginKills: MINUTE, pluginReplacements: 2 * MINUTE, lies: 5 * MINUTE },
  ...{ runtimeRestarts: 5 * MINUTE, kubeletRestarts: 5 * MINUTE, driverReplacements: 5 * MINUTE },
};

/**
 * Lets a node live for an hour of virtual time: pods are evicted, deleted and drained, and the agent is killed and
 * restarted. The archive is configured after a quarter of it, and its collector is unavailable at times.
 */
export async function anHour(seed: number): Promise<Hour> {
  using world = new World(seed, {
    ...{ stormMs: STORM_MS, calmMs: CALM_MS, settings, faults, stopped: undefined },
    ...{ mostReplicas: 4, consumers: 1, reporters: 1, evictionPlugins: 3, drivers: 0, hasBinding: false },
    ...{ hasShortLog: false, hasArchive: false },
  });
  const { machine, history, agent, operator } = world;
  const { init, scheduler } = machine;
  const collector = new Collector(machine, history);
  collector.start();
  init.after(ARCHIVED_FROM_MS, () => {
    world.archiveEndpoint = collector.endpoint;
    agent.configure(operator.written);
    agent.stop();
  });
  for (let at = ARCHIVED_FROM_MS; at < STORM_MS; at += 7 * MINUTE)
    init.after(at, () => collector.goAway(MINUTE));
  for (let at = 0; at < STORM_MS; at += 7 * SECOND)
    init.after(at, () => machine.pick(world.evictionPlugins).change());
  // The storm is over.
  init.after(STORM_MS + 10 * SECOND, () => {
    for (const plugin of world.evictionPlugins) plugin.pressure = "none";
  });
  await world.live(() => false);
  const explanations: PodExplanation[] = [];
  for (const { uid } of world.api.pods.all.values()) {
    const explanation = await read(world, `eviction/explain?pod=${uid}`);
    if (!explanation.error) explanations.push(explanation);
  }
  const stoppedAt = new Date(machine.wall).toISOString();
  agent.stop();
  // The record of the stop is exported at the next start.
  await scheduler.run(scheduler.now + MINUTE);
  return {
    node: NODE,
    explanations,
    requests: collector.accepted,
    stoppedAt,
    evictions: history.evictions.length,
    lives: history.lives.length,
    faults: world.faults,
  };
}
