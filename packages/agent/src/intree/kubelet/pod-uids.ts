import type { Pod } from "../../runtime/index.ts";

/** Looks up the UID of a running pod by namespace and name; undefined if it is not running or not yet known. */
export type PodUidLookup = (namespace: string, name: string) => string | undefined;

/** The pods of this node in the container runtime. */
export interface RunningPods {
  /** Resolves once the runtime's pods have been listed. Before that, all pods would seem to have exited. */
  listed(signal: AbortSignal): Promise<void>;
  /** Returns a lookup of the pods running now. */
  uids(): PodUidLookup;
  /** Yields an item for each pod lifecycle event from now on, until the signal aborts. */
  changes(signal: AbortSignal): AsyncIterable<unknown>;
}

/**
 * Looks up pods in the container runtime. Only pods with a ready sandbox count, because older kubelets still report
 * allocations of completed pods. If several pods have the same name, such as a recreated pod of a StatefulSet, the
 * newest is returned.
 * @param pods the current pods, such as an event log's snapshot
 */
export function podUidLookup(pods: readonly Pod[]): PodUidLookup {
  const newest = new Map<string, { uid: string; createdAt: bigint }>();
  for (const { namespace, name, uid, sandboxes } of pods) {
    const sandbox = sandboxes.find(({ state }) => state === "running");
    if (!sandbox) continue;
    const key = `${namespace}/${name}`;
    const known = newest.get(key);
    if (!known || sandbox.createdAt > known.createdAt) newest.set(key, { uid, createdAt: sandbox.createdAt });
  }
  return (namespace, name) => newest.get(`${namespace}/${name}`)?.uid;
}
