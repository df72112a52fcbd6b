import type { CollectedAsks } from "./asks.ts";
import type { MetThreshold, UnservedThreshold } from "./decision.ts";
import type { RoundInput } from "./round.ts";

type Unserved = Omit<UnservedThreshold, "since">;

/**
 * Marks the confirmed hard thresholds for which no pod may be selected, each with the time since when. Pure. A
 * threshold that waits for its last victim or in its cooldown is not marked.
 */
export function withUnserved(
  met: readonly MetThreshold[],
  unserved: CollectedAsks["unserved"],
  { now, state }: Pick<RoundInput, "now" | "state">,
): MetThreshold[] {
  return met.map((threshold) => {
    if (threshold.metType !== "hard" || !threshold.confirmed) return threshold;
    const why = unserved.get(threshold.plugin) ?? unservedByHold(threshold);
    if (why === undefined) return threshold;
    const since = state.unserved.find(({ plugin }) => plugin === threshold.plugin)?.since ?? now;
    return { ...threshold, unserved: { ...why, since } };
  });
}

function unservedByHold({ held }: MetThreshold): Unserved | undefined {
  if (held?.reason === "noEligiblePod")
    return { reason: held.reason, message: "no candidate can be evicted now" };
  if (held?.reason !== "nodeLimit") return undefined;
  return { reason: held.reason, message: "the limit of evictions on this node is reached" };
}
