import type { ApiAnswers } from "@nodekeeper/api/openapi";

type HistoryPod = ApiAnswers["eviction/pods"]["items"][number];
type RuntimePod = ApiAnswers["pods"]["items"][number];

/** A listed pod, from the history, the container runtime, or both. */
export interface ListedPod {
  uid: string;
  namespace: string;
  name: string;
  /** Whether the history has it, so that it can be explained by UID. */
  isRecorded: boolean;
  /** State of its containers in the runtime: "2 of 3 run". Undefined if the runtime does not have the pod. */
  containers: string | undefined;
  /** Deletion time, milliseconds since the epoch. Null while it exists. */
  leftAt: number | null;
}

/**
 * Returns the pods whose name contains a text or whose UID equals it: existing ones by name, then the others, last
 * deleted first. A static pod and its mirror pod, which have different UIDs in the runtime and the API server, are one.
 */
export function listPods(
  text: string,
  history: readonly HistoryPod[],
  runtime: readonly RuntimePod[],
): ListedPod[] {
  const byUid = new Map(runtime.map((pod) => [pod.uid, pod]));
  const recorded = new Set(history.map(({ uid }) => uid));
  const unrecorded = new Map(
    runtime.filter(({ uid }) => !recorded.has(uid)).map((pod) => [nameOf(pod), pod]),
  );
  const listed = history.map(({ uid, namespace, name, leftAt }) => {
    const isStatic = leftAt === null && !byUid.has(uid);
    const pod = byUid.get(uid) ?? (isStatic ? unrecorded.get(`${namespace}/${name}`) : undefined);
    return { uid, namespace, name, leftAt, isRecorded: true, containers: containersOf(pod) };
  });
  const there = new Set(listed.filter(({ leftAt }) => leftAt === null).map(nameOf));
  for (const [fullName, pod] of unrecorded) {
    if (there.has(fullName)) continue;
    const { uid, namespace, name } = pod;
    listed.push({ uid, namespace, name, leftAt: null, isRecorded: false, containers: containersOf(pod) });
  }
  return listed
    .filter((pod) => pod.uid === text || nameOf(pod).includes(text))
    .sort((a, b) => compare(orderOf(a), orderOf(b)) || compare(nameOf(a), nameOf(b)));
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

function containersOf(pod: RuntimePod | undefined): string | undefined {
  if (!pod) return undefined;
  const run = pod.containers.filter(({ state }) => state === "running").length;
  return `${run} of ${pod.containers.length} run`;
}
