import type { ApiAnswers } from "../../api.ts";

type HistoryPod = ApiAnswers["eviction/pods"]["items"][number];
type RuntimePod = ApiAnswers["pods"]["items"][number];

/** A pod to choose: of the history, of the container runtime, or of both. */
export interface ListedPod {
  uid: string;
  namespace: string;
  name: string;
  /** Containers as the runtime has them: "2 of 3 run"; undefined where it has none of the pod. */
  containers: string | undefined;
  /** When it was deleted, milliseconds since the epoch; null while it exists. */
  leftAt: number | null;
  /** Whether a newer pod has its name, so that a link needs its UID. */
  isOlder: boolean;
}

/**
 * The pods whose name contains a text, or whose UID it is: those that exist by name, then the others, the last deleted first.
 * Static pods, which the API server may not have, are those of the runtime alone.
 */
export function listPods(
  text: string,
  history: readonly HistoryPod[],
  runtime: readonly RuntimePod[],
): ListedPod[] {
  const running = new Map(runtime.map((pod) => [pod.uid, pod]));
  const known = new Set(history.map(({ uid }) => uid));
  const all = [
    ...history,
    ...runtime.filter(({ uid }) => !known.has(uid)).map((pod) => ({ ...pod, seenAt: 0, leftAt: null })),
  ].filter(({ uid, namespace, name }) => uid === text || `${namespace}/${name}`.includes(text));
  all.sort(
    (a, b) => compare(orderOf(a), orderOf(b)) || compare(a.namespace, b.namespace) || compare(a.name, b.name),
  );
  const names = new Set<string>();
  return all.map(({ uid, namespace, name, leftAt }) => {
    const full = `${namespace}/${name}`;
    const isOlder = names.has(full);
    names.add(full);
    return { uid, namespace, name, leftAt, isOlder, containers: containersOf(running.get(uid)) };
  });
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
