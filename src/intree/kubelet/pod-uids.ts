import type { Pod } from "../../runtime/index.ts";

/** Finds the UID of a pod that runs by its names; undefined for a pod that does not run, or is not known yet. */
export type PodUidLookup = (namespace: string, name: string) => string | undefined;

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
