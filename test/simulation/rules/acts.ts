import { CNRS, NODE } from "../world/api-server.ts";
import {
  type ApiWrite,
  type ContainerStop,
  type Eviction,
  type History,
  isEvictionRequest,
  podNameOf,
  REWRITTEN_MS,
} from "../world/history.ts";
import { protectedNames } from "../world/node.ts";
import type { Settings } from "../world/settings.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

/** Looks at each write of the agent once, when it was answered. */
export function eachWrite(
  look: (world: World, write: World["history"]["writes"][number]) => string | undefined,
): NonNullable<Rule["watch"]> {
  return (world) => {
    let seen = 0;
    return () => {
      const { writes } = world.history;
      for (; seen < writes.length; seen++) {
        const write = writes[seen]!;
        const found = write.client === "nodekeeper" ? look(world, write) : undefined;
        if (found) return found;
      }
      return undefined;
    };
  };
}

/** The same for evictions: those that were accepted, and those that stop containers, from their first call. */
export function eachEviction(
  look: (world: World, eviction: Eviction, earlier: readonly Eviction[]) => string | undefined,
): NonNullable<Rule["watch"]> {
  return (world) => {
    let acts = 0;
    let seen = 0;
    return () => {
      const { writes, stopEvictions } = world.history;
      if (writes.length + stopEvictions.length === acts) return undefined;
      acts = writes.length + stopEvictions.length;
      const { evictions } = world.history;
      for (; seen < evictions.length; seen++) {
        const found = look(world, evictions[seen]!, evictions.slice(0, seen));
        if (found) return found;
      }
      return undefined;
    };
  };
}

/** The same for calls of StopContainer. */
export function eachStop(look: (world: World, stop: ContainerStop) => string | undefined): Rule["watch"] {
  return (world) => {
    let seen = 0;
    return () => {
      const { stops } = world.history;
      for (; seen < stops.length; seen++) {
        const found = look(world, stops[seen]!);
        if (found) return found;
      }
      return undefined;
    };
  };
}

/** Returns the value of a reporter that is published. Undefined if none is. */
export function publishedOf({ store }: World["api"], reporter: string): string | undefined {
  const { status } = (store.get(CNRS, NODE) ?? {}) as {
    status?: { resources?: { capacity?: Record<string, string> } };
  };
  return status?.resources?.capacity?.[`widgets.example/${reporter}`];
}

// A plugin's answer is acted on in the round in which it was given, or by an agent that was started after a kill and
// finds the decision recorded.
export const LONGEST_ROUND_MS = 60_000;

const KNOWN_MARGIN_MS = 1_000;
// The agent gives a request to the API server up after this.
export const REQUEST_TIMEOUT_MS = 10_000;
// eviction.failedEvictionPause, which is measured from when the agent learns of the refusal.
const PAUSE_MS = 59_000;
// The end of an eviction is recorded as soon as it is known.
export const UNTIL_KEPT_MS = 1_000;

/** Returns whether a boot has lost what the agent recorded about an eviction. */
export function isForgotten(
  eviction: { at: number },
  now: number,
  { boots, full }: History,
  untilRecordedMs = 0,
): boolean {
  const recordedAt = eviction.at + untilRecordedMs;
  // On a full disk, smaller commits may succeed. What waits is written some seconds after there is space.
  const isWaiting = (until: number) =>
    full.some(({ from, to }) => from <= recordedAt && recordedAt <= to && until <= to + REWRITTEN_MS);
  return boots.some(
    ({ at, keptUntil }) =>
      at <= now && eviction.at <= at && (recordedAt > keptUntil || isWaiting(Math.min(at, keptUntil))),
  );
}

/**
 * An eviction counts from when the agent learns that it was accepted. If it does not, because the response
 * was lost or the agent ended, it counts from when it sent its last request, given up after ten seconds.
 */
function marginOf({ at, calledAt, write }: Eviction, { lives }: History): number {
  // Calls of StopContainer are recorded before they are sent.
  if (!write) return KNOWN_MARGIN_MS + at - calledAt;
  const { deliveredAt } = write;
  const isKnown =
    deliveredAt !== undefined &&
    !lives.some(({ endedAt }) => endedAt !== undefined && endedAt >= at && endedAt < at + 1_000);
  return isKnown ? KNOWN_MARGIN_MS : KNOWN_MARGIN_MS + REQUEST_TIMEOUT_MS;
}

const CNR_STATUS = /\/customnoderesources\/[^/]+\/status$/;

export const acts: readonly Rule[] = [
  {
    promise: "Labels, annotations, capacity and taints of other owners stay as they wrote them.",
    watch: eachWrite(({ otherWriters, katalyst }, { method, path }) => {
      const changed = otherWriters.changed() ?? katalyst.changed();
      return changed && `after ${method} ${path}: ${changed}`;
    }),
  },
  {
    promise:
      "What is published of a reporter is what it reported, never goes back to an earlier report, and stays while the reporter is away, for the grace period at least.",
    watch: (world) => {
      // A delayed apply, for example of an agent that was killed meanwhile, overwrites a later one until it is repaired.
      if (world.plan.faults.slow > 0) return () => undefined;
      const last = new Map<string, { index: number; write?: ApiWrite }>();
      // The last report that the agent knows to be accepted, by reporter.
      const known = new Map<string, number>();
      // Reporters whose report was withdrawn after the grace period.
      const withdrawn = new Set<string>();
      let refusedAt = -1;
      const look = eachWrite(({ api, reporters, history, reporterGraceMs }, write) => {
        const { path, status, isDryRun, at: now } = write;
        if (!CNR_STATUS.test(path) || isDryRun) return undefined;
        if (status === 422) refusedAt = now;
        if (status >= 300) return undefined;
        for (const { name, reports } of reporters) {
          const published = publishedOf(api, name);
          const before = last.get(name) ?? { index: -1 };
          if (before.write?.deliveredAt !== undefined) known.set(name, before.index);
          const isPublished = (at: number) => `${reports[at]}` === `${published}`;
          const later = reports.findIndex((_, at) => at >= before.index && isPublished(at));
          // If a report is refused, the last one known to be accepted stays published.
          const lost = before.write?.deliveredAt === undefined ? before.write : undefined;
          const accepted = lost && refusedAt > lost.at ? known.get(name) : undefined;
          const index = later < 0 && accepted !== undefined && isPublished(accepted) ? accepted : later;
          const isGone = history.withoutServices.some(
            ({ plugin, from, to }) => plugin === name && from <= now - reporterGraceMs && to >= now,
          );
          if (isGone && published === undefined) withdrawn.add(name);
          if (index < 0 && published === undefined && (before.index < 0 || withdrawn.has(name))) continue;
          if (index < 0)
            return `${name}: ${published ?? "nothing"} after ${reports[before.index] ?? "nothing"}`;
          last.set(name, { index, write });
          withdrawn.delete(name);
        }
        return undefined;
      });
      return look(world);
    },
  },
  {
    promise: "No pod is evicted twice.",
    // A pod whose containers were stopped and restarted may be selected again.
    watch: eachEviction((_world, { podUid, what, isLate }, earlier) =>
      // The agent looks at the pod before it sends again, but can't see a request that is still on its way.
      !isLate && earlier.some((other) => other.write && other.podUid === podUid && !other.isLate)
        ? `${what} is evicted again`
        : undefined,
    ),
  },
  {
    promise:
      "An eviction stops no container that was started after it had stopped the first one, and no other agent continues it.",
    watch: eachStop((world, { at, podUid, podName, id, startedAt, life, isSignalled, isLate }) => {
      const { stops, namings } = world.history;
      if (!isSignalled || isLate) return undefined;
      // Another eviction may have been decided since it was named last.
      const named = namings.findLast((naming) => naming.uid === podUid && naming.at <= at);
      const first = stops.find(
        (other) =>
          other.podUid === podUid && other.isSignalled && other.at >= (named?.at ?? 0) && other.at < at,
      );
      const pod = { uid: podUid, name: podName };
      if (!first || world.unheard(pod, first.at - LONGEST_ROUND_MS, at).length > 0) return undefined;
      if (first.life !== life) return `${podName}: another agent had stopped containers`;
      return startedAt > first.at ? `${podName}: ${id.slice(0, 12)} was started meanwhile` : undefined;
    }),
  },
  {
    promise: "No critical, static, mirror or DaemonSet pod is evicted.",
    watch: eachWrite((_world, write) =>
      isEvictionRequest(write) && isProtected(podNameOf(write.path))
        ? `${write.method} ${write.path}`
        : undefined,
    ),
  },
  {
    promise: "No container of a critical, static, mirror or DaemonSet pod is stopped.",
    watch: eachStop((_world, { podName }) => (isProtected(podName) ? podName : undefined)),
  },
  {
    promise:
      "A request to evict a pod names its UID and version, so that no other pod of this name is evicted, and none that another client has deleted.",
    watch: eachEviction((_world, { podUid, write }) => {
      if (!write) return undefined;
      const { path, body } = write;
      const { deleteOptions = body } = body as { deleteOptions?: unknown };
      const { preconditions } = deleteOptions as {
        preconditions?: { uid?: string; resourceVersion?: string };
      };
      return preconditions?.uid === podUid && preconditions?.resourceVersion ? undefined : path;
    }),
  },
  {
    promise:
      "An Event says that a pod was evicted only if the API server has accepted its eviction, or its containers were stopped.",
    watch: eachWrite(({ history, api }, { path, body }) => {
      if (!path.endsWith("/events")) return undefined;
      const { reason, involvedObject: pod } = body as {
        reason?: string;
        involvedObject?: { name: string; uid?: string };
      };
      const isEvicted = ({ podUid, write }: Eviction) => podUid === pod?.uid && write !== undefined;
      if (reason !== "Evicted" || history.evictions.some(isEvicted)) return undefined;
      if (history.stopped(pod?.uid ?? "").length > 0) return undefined;
      const truth = api.pods.all.get(pod?.uid ?? "");
      if (truth && (history.isStoppedLate(truth) || history.hasExitedDuringCall(truth.uid))) return undefined;
      return `${pod?.name} was not evicted`;
    }),
  },
  {
    promise:
      "No pod is evicted that no plugin has named in this round, of those that it was offered, that no policy selects, and for which no in-tree plugin has a reading over its threshold.",
    watch: eachEviction((world, { podUid, podName, what, at }) => {
      const pod = { uid: podUid, name: podName };
      if (world.unheard(pod, at - LONGEST_ROUND_MS, at).length > 0) return undefined;
      const named = world.history.namings.findLast(({ uid }) => uid === podUid);
      if (!named) return `${what}: no plugin has named it`;
      return at - named.at > LONGEST_ROUND_MS
        ? `${what}: named ${Math.round((at - named.at) / 1_000)} s ago by ${named.plugin}`
        : undefined;
    }),
  },
  {
    promise: "No more pods are evicted in a window than the limits allow, over all restarts and reloads.",
    // A boot may lose commits: SQLite syncs them at checkpoints only, and a full disk takes none. Evictions after the
    // last commit that is left are forgotten then (docs/operating.md).
    watch: eachEviction((world, eviction, earlier) => {
      if (eviction.isLate) return undefined;
      const counted = earlier.filter((other) => counts(world, other, eviction.at));
      const owned = counted.filter(({ podName }) => ownerOf(podName) === ownerOf(eviction.podName));
      return (
        beyond(world, eviction, counted.length + 1, ({ limitPerNode }) => limitPerNode) ??
        beyond(world, eviction, owned.length + 1, ({ limitPerOwner }) => limitPerOwner)
      );
    }),
  },
  {
    promise:
      "After a PodDisruptionBudget has refused the eviction of a pod, it is not requested again for a minute.",
    watch: eachWrite(({ history }, write) => {
      if (!isEvictionRequest(write) || write.isLate) return undefined;
      const refused = history.writes.findLast(
        (other) =>
          other.podUid === write.podUid &&
          other.at < write.at &&
          other.at > write.at - PAUSE_MS &&
          isEvictionRequest(other) &&
          other.isRefusedByBudget,
      );
      if (!refused || !isKept(refused, history)) return undefined;
      if (isForgotten({ at: refused.deliveredAt! }, write.at, history, UNTIL_KEPT_MS)) return undefined;
      return `${write.path} ${Math.round((write.at - refused.at) / 1_000)} s after a refusal`;
    }),
  },
];

/**
 * Returns whether the agent has received and recorded the response to a request about an eviction. An agent that ends
 * earlier withdraws the eviction.
 */
export function isKept({ at, deliveredAt }: ApiWrite, { lives }: History): boolean {
  if (deliveredAt === undefined) return false;
  const keptAt = deliveredAt + UNTIL_KEPT_MS;
  return !lives.some(({ endedAt }) => endedAt !== undefined && endedAt >= at && endedAt < keptAt);
}

/** Returns whether an earlier eviction was within the window of all settings that were in force since. */
function counts({ history, operator }: World, other: Eviction, at: number): boolean {
  const windows = operator.between(other.at, at).map(({ limitWindowMs }) => limitWindowMs);
  if (other.isLate || isForgotten(other, at, history)) return false;
  return at - other.at < Math.min(...windows) - marginOf(other, history);
}

/** Returns why an eviction is beyond a limit, whichever settings its round had. */
function beyond(
  { operator }: World,
  { at, what }: Eviction,
  number: number,
  limitOf: (settings: Settings) => number,
): string | undefined {
  const limits = operator.between(at - LONGEST_ROUND_MS, at).map(limitOf);
  if (limits.some((limit) => limit === 0 || number <= limit)) return undefined;
  return `${what} is number ${number} within the window, allowed are ${Math.max(...limits)}`;
}

/** Returns the workload of a pod, by its name. */
function ownerOf(podName: string): string {
  return podName.split("-")[0]!;
}

function isProtected(podName: string): boolean {
  return protectedNames.some((start) => podName.startsWith(start));
}
