import type { Eviction, PluginCall } from "../world/history.ts";
import type { World } from "../world/world.ts";
import { eachEviction, isForgotten, isKept, LONGEST_ROUND_MS, UNTIL_KEPT_MS } from "./acts.ts";
import { recordedRounds, timeOf } from "./recorded-rounds.ts";
import type { Rule } from "./rule.ts";

// `eviction.releaseMargin`, without the grace period of the pod: the earliest time at which an eviction may be overdue, so
// that no other one waits for it.
const OVERDUE_MS = 30_000;
// When a pod is gone is known at the next write to the API server.
const UNTIL_SEEN_MS = 1_000;

export const pace: readonly Rule[] = [
  {
    promise:
      "No further pod is evicted for a plugin's threshold until the eviction of its last victim has ended and the cooldown has passed.",
    watch: eachEviction((world, eviction, earlier) => {
      const call = thresholdOf(world, eviction);
      if (!call) return undefined;
      const last = earlier.findLast((other) => {
        const its = thresholdOf(world, other);
        return its?.plugin === call.plugin && its !== call && isKnown(world, other, eviction.at);
      });
      if (!last) return undefined;
      const cooldowns = world.operator
        .between(last.at, eviction.at)
        .map(({ cooldownS }) => cooldownS * 1_000);
      const { goneAt = Number.POSITIVE_INFINITY } = world.api.pods.all.get(last.podUid) ?? {};
      const endedAt = Math.min(goneAt, last.at + OVERDUE_MS);
      return eviction.at < endedAt + Math.min(...cooldowns) - UNTIL_SEEN_MS
        ? `${eviction.what} ${Math.round((eviction.at - last.at) / 1_000)} s after ${last.what}`
        : undefined;
    }),
  },
  {
    promise: "No more pods are selected in a round than the burst of its settings allows.",
    atRest: async (world) => {
      if (world.machine.wallOffset !== 0) return [];
      const all = await recordedRounds(world);
      return all.flatMap((round) => {
        const at = timeOf(round, world);
        const settings = world.operator.between(at - LONGEST_ROUND_MS, at + LONGEST_ROUND_MS);
        // Below zero, there is no limit.
        const isBeyond = settings.every(({ burst }) => burst >= 0 && round.decision.victims.length > burst);
        return isBeyond ? [`round ${round.id} has ${round.decision.victims.length} victims`] : [];
      });
    },
  },
];

/**
 * Returns the call in which a plugin named an evicted pod for its threshold. Undefined if somebody else may have
 * requested the pod too, or if it is not known what was requested.
 */
function thresholdOf(world: World, { podUid, podName, at, isLate, write }: Eviction): PluginCall | undefined {
  const { history, faults } = world;
  if (!write || isLate || faults.lies) return undefined;
  const from = at - LONGEST_ROUND_MS;
  if (world.unheard({ uid: podUid, name: podName }, from, at).length > 0) return undefined;
  const namings = history.namings.filter(
    (naming) => naming.uid === podUid && naming.at >= from && naming.at <= at,
  );
  const { call } = namings.at(-1) ?? {};
  const isAlone = namings.every(
    ({ call: each }) => each.plugin === call?.plugin && each.method === call.method,
  );
  return call?.method === "GetTopEvictionPods" && isAlone ? call : undefined;
}

/** Returns whether the agent that evicts next knows that a request was accepted. */
function isKnown({ history }: World, { at, write }: Eviction, now: number): boolean {
  return write !== undefined && isKept(write, history) && !isForgotten({ at }, now, history, UNTIL_KEPT_MS);
}
