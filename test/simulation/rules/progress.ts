import { isFinished } from "../../../packages/testing/src/kubelet/pods.ts";
import { nodeOf } from "../world/binding-scheduler.ts";
import { isEvictionRequest, podNameOf } from "../world/history.ts";
import { keptName, protectedNames } from "../world/node.ts";
import { isDryRun } from "../world/settings.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

const WITHIN_MS = 60_000;
// From the first answer of a plugin until the requests are sent.
const LONGEST_SELECTION_MS = 10_000;

export const progress: readonly Rule[] = [
  {
    promise: "While a hard threshold stays met and a pod may be evicted, one is evicted within a minute.",
    atRest: (world) => {
      const { history, evictionPlugins, machine, operator, inTree, plan } = world;
      // Whatever was under way in the storm has ended only in a calm that is longer.
      if (plan.calmMs <= WITHIN_MS) return [];
      const { now } = machine.scheduler;
      const from = now - WITHIN_MS;
      if ([...history.evictions, ...history.stops].some(({ at }) => at >= from)) return [];
      const pods = eligiblePods(world, from);
      if (pods.length === 0) return [];
      const hard = evictionPlugins
        .filter(({ pressure, isRegistered }) => pressure === "hard" && isRegistered)
        .filter(({ falsehood }) => falsehood === undefined)
        .map(({ name }) => name);
      const ofReadings = pods.flatMap((pod) => inTree.asks(pod, now));
      return [...new Set([...hard, ...ofReadings])]
        .filter((name) => !isDryRun(operator.settings, name))
        .map((name) => `${name} has a hard threshold that is met, and nothing is evicted`);
    },
  },
];

/**
 * Returns the names of the pods that count towards the limits: pods with an eviction request that no budget refused,
 * whatever its outcome, and pods that ended otherwise after they were selected. Each further request counts again,
 * because the agent repeats an eviction if it can't know the outcome of the first. Retries of one eviction look the
 * same here.
 */
function countedPods({ operator, history, api }: World, from: number): string[] {
  const window = from - operator.settings.limitWindowMs;
  // No time counts across a boot (docs/eviction.md): what was before one in the window may be in it.
  const since = history.boots.some(({ at }) => at >= window) ? 0 : window;
  const counted = new Map<string, string>();
  const count = (uid: string | undefined, at: number, isRequest: boolean) => {
    const life = history.lives.findLastIndex(({ startedAt }) => startedAt <= at);
    const key = `${uid} ${life}`;
    counted.set(
      isRequest && counted.has(key) ? `${key} ${at}` : key,
      api.pods.all.get(uid ?? "")?.name ?? "",
    );
  };
  for (const write of history.writes) {
    if (isEvictionRequest(write) && !write.isRefusedByBudget && write.at >= since)
      count(write.podUid, write.at, true);
  }
  for (const { podUid, at } of history.stops) if (at >= since) count(podUid, at, true);
  // A request is recorded before it is sent. If an agent ends in between, the next one can't know whether it
  // arrived.
  const isCut = (at: number) =>
    history.lives.some(({ endedAt = 0 }) => endedAt >= at && endedAt - at < LONGEST_SELECTION_MS);
  for (const { uid, at } of history.namings) {
    if (at >= since && isCut(at)) count(uid, at, false);
    // The agent may select a pod that another client has already ended.
    if (at >= since && api.pods.all.get(uid)?.endedBy === "other") count(uid, at, false);
  }
  const names = [...counted.values()];
  // The agent can't know that a request was lost before it arrived.
  for (const { at, method, url } of history.lost) {
    const name = podNameOf(url);
    if (at >= since && method !== "GET" && url.includes("/pods/") && !names.includes(name)) names.push(name);
  }
  return names;
}

// A StopContainer whose grace period is over for 30 s has failed, and a pod is not selected again for a minute after that.
const LONGEST_PAUSE_MS = 120_000;

/** Returns whether an eviction of a pod may have failed lately. */
function isPaused({ history }: World, uid: string | undefined, from: number): boolean {
  const since = from - LONGEST_PAUSE_MS;
  // A call may not have reached the runtime.
  const isUnreachable = history.runtimeOutages.some(({ to }) => to >= since);
  return (
    history.stops.some(({ podUid, at }) => podUid === uid && at >= since) ||
    (isUnreachable && history.namings.some((naming) => naming.uid === uid && naming.at >= since))
  );
}

/** Returns the pods that may be evicted. */
function eligiblePods(world: World, from: number): { uid: string; name: string }[] {
  const { limitPerNode, limitPerOwner, skipLabels } = world.operator.settings;
  // Selections by policies and in-tree plugins are unknown here; those pods count too if others ended them.
  if ((world.policies.file || world.host.isWatched) && limitPerNode + limitPerOwner > 0) return [];
  const counted = countedPods(world, from);
  if (limitPerNode !== 0 && counted.length >= limitPerNode) return [];
  const excluded = [...protectedNames, ...world.budgets.protectedNames];
  if (skipLabels.length > 0) excluded.push(keptName);
  const countOf = (owner: string) => counted.filter((name) => name.startsWith(owner)).length;
  return world.api.store
    .list("pods")
    .filter(({ metadata: { deletionTimestamp } }) => deletionTimestamp === undefined)
    .filter((pod) => nodeOf(pod) !== undefined && !isFinished(pod))
    .filter(({ metadata: { uid } }) => !isPaused(world, uid, from))
    .map(({ metadata: { uid = "", name = "" } }) => ({ uid, name }))
    .filter(({ name }) => !excluded.some((start) => name.startsWith(start)))
    .filter(({ name }) => limitPerOwner === 0 || countOf(name.split("-")[0]!) < limitPerOwner);
}
