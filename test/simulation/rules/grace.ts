import type { History } from "../world/history.ts";
import { eachEviction, LONGEST_ROUND_MS } from "./acts.ts";
import type { Rule } from "./rule.ts";

type Naming = History["namings"][number];

export const grace: readonly Rule[] = [
  {
    promise: "No pod is evicted for a threshold before the threshold was met for its grace period.",
    watch: eachEviction((world, { podUid, podName, what, at }) => {
      const { history, plan, faults } = world;
      // Timers are of the wall clock, and liars report other grace periods.
      if (faults.wallSteps || Number.isFinite(plan.faults.lies)) return undefined;
      const from = at - LONGEST_ROUND_MS;
      if (world.unheard({ uid: podUid, name: podName }, from, at).length > 0) return undefined;
      const namings = history.namings.filter((naming) => naming.uid === podUid && naming.at >= from);
      const missing = namings.map((naming) => missingMs(naming, history, at));
      return missing.length > 0 && missing.every((ms) => ms > 0)
        ? `${what}: ${Math.min(...missing)} ms before the grace period ended`
        : undefined;
    }),
  },
];

/** Returns how long before the end of its grace period a threshold led to a naming; 0 or less if not before. */
function missingMs({ plugin, at: namedAt, call }: Naming, { pluginCalls }: History, at: number): number {
  if (call.method !== "GetTopEvictionPods") return 0;
  const met = pluginCalls.filter(
    ({ plugin: name, method, answer = "none" }) =>
      name === plugin && method === "ThresholdMet" && !answer.startsWith("none"),
  );
  const used = met.filter((each) => each.at >= namedAt - LONGEST_ROUND_MS && each.at <= namedAt);
  const [first] = met;
  if (!first || used.length === 0) return 0;
  // A timer starts with the round that has the answer, in whole milliseconds.
  return first.at - 1 + Math.min(...used.map(({ graceSeconds }) => graceSeconds)) * 1_000 - at;
}
