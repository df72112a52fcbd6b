import { createHash } from "node:crypto";
import { messageOf } from "@nodekeeper/core/lib";
import { onUncaught, replaceGlobals } from "./machine/globals.ts";
import { acts } from "./rules/acts.ts";
import { agents } from "./rules/agents.ts";
import { archive } from "./rules/archive.ts";
import { binding } from "./rules/binding.ts";
import { bounds } from "./rules/bounds.ts";
import { conditions } from "./rules/conditions.ts";
import { devices } from "./rules/devices.ts";
import { failingParts } from "./rules/failing-parts.ts";
import { grace } from "./rules/grace.ts";
import { inTree } from "./rules/in-tree.ts";
import { liars } from "./rules/liars.ts";
import { lifecycle } from "./rules/lifecycle.ts";
import { metrics } from "./rules/metrics.ts";
import { nodeTruth } from "./rules/node-truth.ts";
import { once } from "./rules/once.ts";
import { outage } from "./rules/outage.ts";
import { pace } from "./rules/pace.ts";
import { partialOutage } from "./rules/partial-outage.ts";
import { poolWrites } from "./rules/pool-writes.ts";
import { pools } from "./rules/pools.ts";
import { progress } from "./rules/progress.ts";
import { quiet } from "./rules/quiet.ts";
import { rest } from "./rules/rest.ts";
import { rounds } from "./rules/rounds.ts";
import type { Rule } from "./rules/rule.ts";
import { selections } from "./rules/selections.ts";
import { settings } from "./rules/settings.ts";
import { truth } from "./rules/truth.ts";
import { withdrawal } from "./rules/withdrawal.ts";
import type { Event } from "./world/history.ts";
import type { Plan, PlanChanges } from "./world/plan.ts";
import { World } from "./world/world.ts";

export { anHour } from "./hour.ts";

replaceGlobals();

const uncaught: unknown[] = [];
onUncaught((error) => uncaught.push(error));

/** How a world went. */
export interface Outcome {
  seed: number;
  /** The promises that were broken, and by what. Empty if all were kept. */
  broken: { promise: string; what: string }[];
  /** Digest of everything that happened: equal for runs of one seed. */
  digest: string;
  steps: number;
  virtualMs: number;
  evictions: number;
  lives: number;
  /** Number of faults by name. */
  faults: Record<string, number>;
  plan: Plan;
  events: readonly Event[];
  log: readonly string[];
}

const rules = [
  ...acts,
  ...grace,
  ...liars,
  ...agents,
  ...settings,
  ...progress,
  ...devices,
  ...binding,
  ...once,
  ...pace,
  ...lifecycle,
  ...rest,
  ...metrics,
  ...rounds,
  ...conditions,
  ...truth,
  ...selections,
  ...archive,
  ...inTree,
  ...quiet,
  ...partialOutage,
  ...outage,
  ...bounds,
  ...pools,
  ...poolWrites,
  ...nodeTruth,
  ...withdrawal,
  ...failingParts,
];

// Rules that compare with what is there at the moment. They do not watch at rest, when other rules stop drivers and the
// kubelet.
const ofPresent: ReadonlySet<Rule> = new Set([...devices, ...binding]);

/**
 * Lets the world of a seed live, and judges it. A world that breaks a promise ends there.
 * @param changes what is different from the plan that is drawn from the seed
 */
export async function simulate(seed: number, changes: PlanChanges = {}): Promise<Outcome> {
  using world = new World(seed, changes);
  const { history, machine } = world;
  const broken: Outcome["broken"] = [];
  const watches = rules.flatMap((rule) =>
    rule.watch ? [{ rule, promise: rule.promise, look: rule.watch(world) }] : [],
  );
  const lookAt = (some: typeof watches) => {
    if (broken.length > 0) return;
    for (const { promise, look } of some) {
      const what = look();
      if (what === undefined) continue;
      history.note("rule", `${promise} ${what}`);
      broken.push({ promise, what });
    }
    broken.push(...uncaughtErrors());
  };
  await world.live(() => {
    lookAt(watches);
    return broken.length > 0;
  });
  const ofActs = watches.filter(({ rule }) => !ofPresent.has(rule));
  machine.scheduler.afterStep = () => lookAt(ofActs);
  if (broken.length === 0) {
    for (const { promise, atRest } of rules) {
      for (const what of (await atRest?.(world)) ?? []) broken.push({ promise, what });
    }
  }
  // Those left to nobody after the last look: the next world of this process has no part in them.
  broken.push(...uncaughtErrors());
  const digest = createHash("sha256")
    .update(JSON.stringify(history.events))
    .update(`${machine.scheduler.steps}`);
  return {
    seed,
    broken,
    digest: digest.digest("hex").slice(0, 16),
    steps: machine.scheduler.steps,
    virtualMs: machine.scheduler.now,
    evictions: history.evictions.length,
    lives: history.lives.length,
    faults: world.faults,
    plan: world.plan,
    events: history.events,
    log: world.agent.log,
  };
}

function uncaughtErrors(): Outcome["broken"] {
  return uncaught.splice(0).map((error) => ({
    promise: "No error is left to nobody.",
    what: (error as Error)?.stack ?? messageOf(error),
  }));
}
