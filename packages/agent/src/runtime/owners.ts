import type { PodIdentity } from "@nodekeeper/api/lifecycle";
import { RecentMap } from "@nodekeeper/core/lib";

/**
 * Maps containers and sandboxes to their pods: all of the last complete list, and a bounded number of recent
 * others.
 */
export class Owners {
  #listed: ReadonlyMap<string, PodIdentity> = new Map();
  readonly #others: RecentMap<string, PodIdentity>;

  /** @param limit maximum number of entries that are not in the last complete list */
  constructor(limit: number) {
    this.#others = new RecentMap(limit);
  }

  /** Returns the pod of a container or sandbox. Undefined if it is unknown. */
  find(id: string): PodIdentity | undefined {
    return this.#listed.get(id) ?? this.#others.get(id);
  }

  /**
   * Records a complete list. Entries that are no longer listed are kept, because events for them may follow.
   */
  listed(owners: ReadonlyMap<string, PodIdentity>): void {
    const before = this.#listed;
    this.#listed = owners;
    for (const [id, pod] of before) if (!owners.has(id)) this.remember(id, pod);
  }

  remember(id: string, pod: PodIdentity): void {
    if (this.#listed.has(id)) return;
    // A copy, because the pod object references all its containers.
    this.#others.set(id, { uid: pod.uid, name: pod.name, namespace: pod.namespace });
  }
}
