import { newestOfEachName } from "@nodekeeper/api/lifecycle";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { counted } from "@nodekeeper/api/wording";
import { quantity } from "../../text.ts";

type HistoryPod = ApiAnswers["eviction/pods"]["items"][number];
type RuntimePod = ApiAnswers["pods"]["items"][number];
export type PodUsage = ApiAnswers["pods/usage"]["items"][number];
export type EligiblePod = ApiAnswers["eviction/eligibility"][number];

/** A listed pod, from the history, the container runtime, or both. */
export interface ListedPod {
  uid: string;
  namespace: string;
  name: string;
  /** Whether the history has it, so that it can be explained by UID. */
  isRecorded: boolean;
  /** State of its containers in the runtime: "2 of 3 run". Undefined if the runtime does not have the pod. */
  containers: string | undefined;
  /** Its UID in the runtime, which of a static pod is another one than at the API server. */
  runtimeUid: string | undefined;
  /** What it uses now. Undefined if neither the kernel nor the runtime reports it. */
  usage?: PodUsage | undefined;
  /** Restarts of its containers. Undefined if the runtime does not have the pod. */
  restarts: number | undefined;
  /** Its spec, and whether it can be evicted. Undefined if the API server does not have the pod. */
  eligible: EligiblePod | undefined;
  /** Deletion time, milliseconds since the epoch. Null while it exists. */
  leftAt: number | null;
}

/** Keys by which pods are sorted; those without a value come last. */
export const sortKeys = {
  name: nameOf,
  phase: ({ eligible }) => eligible?.pod.phase,
  restarts: ({ restarts }) => restarts,
  cpu: ({ usage }) => usage?.cpu,
  memory: ({ usage }) => usage?.memoryBytes,
  age: ({ eligible }) => eligible?.pod.startTime ?? undefined,
  owner: ({ eligible }) => ownerText(eligible),
  qos: ({ eligible }) => eligible?.pod.qosClass,
  priority: ({ eligible }) => eligible?.pod.priority,
  eviction: ({ eligible }) => eligible?.eviction,
} as const satisfies Record<string, (pod: ListedPod) => string | number | undefined>;
export type SortKey = keyof typeof sortKeys;

/** Sorts pods by a key; equal ones keep their order. */
export function sortPods(pods: readonly ListedPod[], key: SortKey, isDescending: boolean): ListedPod[] {
  const valueIn = sortKeys[key];
  return pods.toSorted((a, b) => {
    const [first, second] = [valueIn(a), valueIn(b)];
    if (first === undefined || second === undefined)
      return Number(first === undefined) - Number(second === undefined);
    return (isDescending ? -1 : 1) * compare<string | number>(first, second);
  });
}

const keysWithoutEligibility: readonly SortKey[] = ["name", "restarts", "cpu", "memory"];

/**
 * Returns whether a sort key ("-key": descending) or a filter by eligibility requires the eligibility of the pods.
 * @param filter empty for none
 */
export function isEligibilityNeeded(sort: string, filter: string): boolean {
  const key = sort.replace(/^-/, "");
  return filter !== "" || (isSortKey(key) && !keysWithoutEligibility.includes(key));
}

/** Returns whether a sort key ("-key": descending) needs what pods use. */
export function isUsageNeeded(sort: string): boolean {
  return ["cpu", "memory"].includes(sort.replace(/^-/, ""));
}

/** Returns how many pods have a reason that has ended at `now`: whether they can be evicted must be read again. */
export function countEnded(pods: readonly EligiblePod[] | undefined, now: number): number {
  return pods?.filter(({ until }) => until !== undefined && until <= now).length ?? 0;
}

export function isSortKey(key: string): key is SortKey {
  return Object.hasOwn(sortKeys, key);
}

/** Says how many pods were found, and how to find others. @param filter title of the filter; undefined for none */
export function countText(counts: {
  found: number;
  listed: number;
  hasMore: boolean;
  filter?: string | undefined;
}): string {
  const { found, listed, hasMore, filter } = counts;
  if (found === 0 && filter !== undefined) return `None of the pods found matches the filter "${filter}".`;
  if (found === 0) return "No pod known here has such a name. Pods of other nodes are not known here.";
  if (hasMore || listed < found) return `The first ${listed}; write more of the name to see others.`;
  return counted(found, "pod");
}

/** Formats the owner of a pod: "ReplicaSet web". Undefined if it has none. */
export function ownerText(eligible: EligiblePod | undefined): string | undefined {
  const owner = eligible?.pod.owner;
  return owner ? `${owner.kind} ${owner.name}` : undefined;
}

/**
 * Returns the pods whose name contains a text or whose UID equals it: existing ones by name, then the others, last
 * deleted first. A static pod and its mirror pod, which have different UIDs in the runtime and the API server, are one.
 */
export function listPods(
  text: string,
  history: readonly HistoryPod[],
  runtime: readonly RuntimePod[],
  eligible: readonly EligiblePod[] = [],
): ListedPod[] {
  const eligibleByUid = new Map(eligible.map((one) => [one.pod.uid, one]));
  const byUid = new Map(runtime.map((pod) => [pod.uid, pod]));
  const recorded = new Set(history.map(({ uid }) => uid));
  const unrecorded = new Map(
    runtime.filter(({ uid }) => !recorded.has(uid)).map((pod) => [nameOf(pod), pod]),
  );
  const listed = history.map(({ uid, namespace, name, leftAt }) => {
    const isStatic = leftAt === null && !byUid.has(uid);
    const pod = byUid.get(uid) ?? (isStatic ? unrecorded.get(`${namespace}/${name}`) : undefined);
    return {
      uid,
      namespace,
      name,
      leftAt,
      isRecorded: true,
      ...runtimeOf(pod),
      eligible: eligibleByUid.get(uid),
    };
  });
  const there = new Set(listed.filter(({ leftAt }) => leftAt === null).map(nameOf));
  for (const [fullName, pod] of unrecorded) {
    if (there.has(fullName)) continue;
    const { uid, namespace, name } = pod;
    listed.push({
      uid,
      namespace,
      name,
      leftAt: null,
      isRecorded: false,
      ...runtimeOf(pod),
      eligible: undefined,
    });
  }
  return listed
    .filter((pod) => pod.uid === text || nameOf(pod).includes(text))
    .sort((a, b) => compare(orderOf(a), orderOf(b)) || compare(nameOf(a), nameOf(b)));
}

/** Formats what a pod uses: "0.25" CPUs, "1.2 GiB" of memory. */
export function usedText(what: "cpu" | "memory", amount: number): string {
  return what === "cpu" ? String(Number(amount.toFixed(3))) : quantity(amount, "bytes");
}

/** Returns the pods with what they use. */
export function withUsage(pods: readonly ListedPod[], usage: readonly PodUsage[] = []): ListedPod[] {
  const byUid = new Map(usage.map((one) => [one.uid, one]));
  return pods.map((pod) => ({ ...pod, usage: byUid.get(pod.runtimeUid ?? pod.uid) }));
}

function nameOf({ namespace, name }: { namespace: string; name: string }): string {
  return `${namespace}/${name}`;
}

function orderOf({ leftAt }: { leftAt: number | null }): number {
  return leftAt === null ? Number.NEGATIVE_INFINITY : -leftAt;
}

function compare<T extends string | number>(a: T, b: T): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function runtimeOf(pod: RuntimePod | undefined): Pick<ListedPod, "containers" | "restarts" | "runtimeUid"> {
  if (!pod) return { containers: undefined, restarts: undefined, runtimeUid: undefined };
  const containers = newestOfEachName(pod.containers);
  const run = containers.filter(({ state }) => state === "running").length;
  return {
    runtimeUid: pod.uid,
    containers: `${run} of ${containers.length} run`,
    restarts: containers.reduce((sum, { attempt }) => sum + attempt, 0),
  };
}
