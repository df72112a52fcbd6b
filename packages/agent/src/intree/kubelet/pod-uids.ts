import type { Pod } from "../../runtime/index.ts";

/** Finds the UID of a pod that runs by its names; undefined for a pod that does not run, or is not known yet. */
export type PodUidLookup = (namespace: string, name: string) => string | undefined;

/** The pods of this node as the container runtime has them. */
export interface RunningPods {
  /** Resolves once the runtime has told its pods: until then they would all seem to have ended. */
  listed(signal: AbortSignal): Promise<void>;
  /** The pods that run, as of when it is called. */
  uids(): PodUidLookup;
  /** Gives an item, whatever it is, each time something happened to a pod from now on, until the signal aborts. */
  changes(signal: AbortSignal): AsyncIterable<unknown>;
}

/**
 * Looks pods up among those that the runtime has. Only a pod with a sandbox that is ready counts: older kubelets still
 * name what a pod held that has ended. Of pods with the same names, such as a StatefulSet's made anew, it is the newest.
 * @param pods as of now, such as an event log's snapshot
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
