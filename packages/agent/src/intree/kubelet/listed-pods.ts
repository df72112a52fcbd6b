import type { PodHolding } from "./answer.ts";
import type { PodUidLookup } from "./pod-uids.ts";

const LONGEST_MS = 60_000;

/**
 * Recognizes answers of a kubelet that does not list all of its pods yet: after its start it serves PodResources before
 * it has read its pods from the API server (kubernetes pkg/kubelet/kubelet.go, Run), and answers without them.
 */
export class ListedPods {
  /** UIDs of the pods of the last complete answer, by namespace and name. */
  #uids: ReadonlyMap<string, string> = new Map();
  #lackingSince: number | undefined;

  /**
   * Whether an answer lists every pod of the last complete answer that still runs. An answer that lacks one is taken for
   * complete once pods have been lacking for a minute: a pod may run on after it was deleted by force.
   * @param nowMs monotonic milliseconds
   */
  isComplete(pods: readonly PodHolding[], podUid: PodUidLookup, nowMs: number): boolean {
    const uids = new Map<string, string>();
    for (const { namespace, name } of pods) {
      const uid = podUid(namespace, name);
      if (uid !== undefined) uids.set(`${namespace}/${name}`, uid);
    }
    if (this.#lacksNone(uids, podUid)) this.#lackingSince = undefined;
    else this.#lackingSince ??= nowMs;
    if (this.#lackingSince !== undefined && nowMs - this.#lackingSince < LONGEST_MS) return false;
    this.#uids = uids;
    this.#lackingSince = undefined;
    return true;
  }

  #lacksNone(uids: ReadonlyMap<string, string>, podUid: PodUidLookup): boolean {
    for (const [key, uid] of this.#uids) {
      if (uids.has(key)) continue;
      const [namespace = "", name = ""] = key.split("/");
      if (podUid(namespace, name) === uid) return false;
    }
    return true;
  }
}
