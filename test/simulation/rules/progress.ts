import { protectedNames } from "../world/node.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

const WITHIN_MS = 60_000;

export const progress: readonly Rule[] = [
  {
    promise: "While a hard threshold stays met and a pod may be evicted, one is evicted within a minute.",
    // The calm is longer than a minute: whatever was under way in the storm has ended.
    atRest: (world) => {
      const { history, evictionPlugins, machine } = world;
      const from = machine.scheduler.now - WITHIN_MS;
      if (world.plan.isDryRun || isLimited(world, from)) return [];
      if (history.evictions.some(({ at }) => at >= from) || !hasEligiblePod(world)) return [];
      return evictionPlugins
        .filter(({ pressure, isRegistered }) => pressure === "hard" && isRegistered)
        .map(({ name }) => `${name} reports a hard threshold, and nothing is evicted`);
    },
  },
];

// Requests count that were sent, whatever became of them, and pods that ended otherwise after they had been selected.
function isLimited({ plan, history, machine, api }: World, from: number): boolean {
  if (plan.limitPerNode === 0) return true;
  const since = from - plan.limitWindowMs;
  const sent = history.writes.filter(
    ({ client, method, path, at }) =>
      client === "nodekeeper" &&
      method === "POST" &&
      path.endsWith("/eviction") &&
      at >= since &&
      at <= machine.scheduler.now,
  );
  const counted = new Set(sent.map(({ podUid }) => podUid));
  for (const { uid, at } of history.namings) {
    const pod = api.pods.all.get(uid);
    if (at >= since && pod?.endedBy === "other" && at <= pod.endedAt) counted.add(uid);
  }
  return counted.size >= plan.limitPerNode;
}

function hasEligiblePod({ api }: World): boolean {
  return api.store
    .list("pods")
    .some(
      ({ metadata: { name = "", deletionTimestamp } }) =>
        deletionTimestamp === undefined && !protectedNames.some((start) => name.startsWith(start)),
    );
}
