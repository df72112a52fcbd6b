import type { ApiAnswers } from "../../api.ts";

type HistoryPod = ApiAnswers["eviction/pods"]["items"][number];
type RuntimePod = ApiAnswers["pods"]["items"][number];

/** A pod to choose: of the history, of the container runtime, or of both. */
export interface ListedPod {
  uid: string;
  namespace: string;
  name: string;
  /** Whether the history has it, so that it is explained by its UID. */
  isRecorded: boolean;
  /** Containers as the runtime has them: "2 of 3 run"; undefined where it has none of the pod. */
  containers: string | undefined;
  /** When it was deleted, milliseconds since the epoch; null while it exists. */
  leftAt: number | null;
}

/**
 * The pods whose name contains a text, or whose UID it is: those that exist by name, then the others, the last deleted first.
 * A static pod has another UID at the runtime than its mirror pod at the API server: these are one.
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
