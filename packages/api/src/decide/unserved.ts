import { compareText } from "../text/index.ts";
import { answerOf } from "./answers.ts";
import type { CollectedAsks } from "./asks.ts";
import type { MetThreshold, UnservedThreshold } from "./decision.ts";
import type { IneligiblePod } from "./eligibility.ts";
import type { PreparedRound } from "./prepare.ts";
import type { RoundInput } from "./round.ts";

type Unserved = Omit<UnservedThreshold, "since" | "notOffered">;
type NotOffered = NonNullable<UnservedThreshold["notOffered"]>;

/**
 * Marks the confirmed hard thresholds for which no pod may be selected, each with the time since when, and with the
 * candidates that its plugin could not choose. Pure. A threshold that waits for its last victim or in its cooldown is
 * not marked.
 */
export function withUnserved(
  { met, eligibility }: Pick<PreparedRound, "met" | "eligibility">,
  unserved: CollectedAsks["unserved"],
  { now, state, plugins }: Pick<RoundInput, "now" | "state" | "plugins">,
): MetThreshold[] {
  return met.map((threshold) => {
    if (threshold.metType !== "hard" || !threshold.confirmed) return threshold;
    const why = unserved.get(threshold.plugin) ?? unservedByHold(threshold);
    if (why === undefined) return threshold;
    const since = state.unserved.find(({ plugin }) => plugin === threshold.plugin)?.since ?? now;
    const asked = plugins.find(({ plugin }) => plugin === threshold.plugin);
    const wanted = new Set((asked && answerOf(asked.threshold)?.candidateUids) ?? []);
    const notOffered = countByReason(
      eligibility.ineligible.filter(({ uid }) => wanted.size === 0 || wanted.has(uid)),
    );
    return { ...threshold, unserved: { ...why, since, ...(notOffered.length > 0 ? { notOffered } : {}) } };
  });
}

function unservedByHold({ held }: MetThreshold): Unserved | undefined {
  if (held?.reason === "noEligiblePod")
    return { reason: held.reason, message: "no candidate can be evicted now" };
  if (held?.reason !== "nodeLimit") return undefined;
  return { reason: held.reason, message: "the limit of evictions on this node is reached" };
}

function countByReason(pods: readonly IneligiblePod[]): NotOffered {
  return [...Map.groupBy(pods, ({ reason }) => reason)]
    .map(([reason, group]) => {
      const ends = group.flatMap(({ until }) => until ?? []);
      return { reason, pods: group.length, until: ends.length > 0 ? Math.min(...ends) : null };
    })
    .sort((a, b) => b.pods - a.pods || compareText(a.reason, b.reason));
}
