import type { PodHolding } from "./answer.ts";
import type { PodUidLookup } from "./pod-uids.ts";

const LONGEST_MS = 60_000;

/**
 * Recognizes responses of a kubelet that does not list all of its pods yet. After its start, the kubelet serves
 * PodResources before it has received its pods from the API server (kubernetes pkg/kubelet/kubelet.go, Run), and
 * responds without them.
 */
export class ListedPods {
  /** UIDs of the pods in the last complete response, by namespace and name. */
  #uids: ReadonlyMap<string, string> = new Map();
  #lackingSince: number | undefined;

  /**
   * Returns whether a response lists every pod of the last complete response that is still running. After pods have
   * been missing for a minute, a response counts as complete: the containers of a force-deleted pod may still be
   * running.
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
