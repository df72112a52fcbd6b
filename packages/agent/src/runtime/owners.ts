/** Whose a container or sandbox is. */
export interface PodIdentity {
  uid: string;
  name: string;
  namespace: string;
}

/**
 * Remembers the pods of containers and sandboxes: of all that the last list of everything had, and of a bounded number
 * of others, the newest of them.
 */
export class Owners {
  readonly #limit: number;
  #listed: ReadonlyMap<string, PodIdentity> = new Map();
  readonly #others = new Map<string, PodIdentity>();

  /** @param limit how many that are not in the last list are remembered */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The pod of a container or sandbox; undefined where it is not known. */
  find(id: string): PodIdentity | undefined {
    return this.#listed.get(id) ?? this.#others.get(id);
  }

  /** Takes what a list of everything had; events about what it no longer has may still come. */
  listed(owners: ReadonlyMap<string, PodIdentity>): void {
    const before = this.#listed;
    this.#listed = owners;
    for (const [id, pod] of before) if (!owners.has(id)) this.remember(id, pod);
  }

  remember(id: string, pod: PodIdentity): void {
    if (this.#listed.has(id)) return;
    this.#others.delete(id);
    // A copy: the pod itself holds all its containers.
    this.#others.set(id, { uid: pod.uid, name: pod.name, namespace: pod.namespace });
    if (this.#others.size <= this.#limit) return;
    const [oldest] = this.#others.keys();
    if (oldest !== undefined) this.#others.delete(oldest);
  }
}
