import type { PodIdentity } from "@nodekeeper/api/lifecycle";
import type { Container, PodSandbox } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { Anomalies } from "./anomalies.ts";
import { containerState, sandboxState } from "./states.ts";
import type { ListedContainer, Pod } from "./types.ts";

// An unchanged item is the same object as in the last list, so its result is cached in it.
interface Made {
  listed?: ListedContainer;
}

interface GrowingPod extends PodIdentity {
  sandboxes: ListedContainer[];
  containers: ListedContainer[];
}

/**
 * Groups sandboxes and containers into pods. Drops items without an ID, duplicates and sandboxes without a
 * pod UID, and counts them as anomalies.
 */
export class PodGrouping {
  readonly #anomalies: Anomalies;
  readonly #pods = new Map<string, GrowingPod>();
  readonly #owners = new Map<string, PodIdentity>();

  constructor(anomalies: Anomalies) {
    this.#anomalies = anomalies;
  }

  /** Pods of all added items, by item ID. */
  get owners(): ReadonlyMap<string, PodIdentity> {
    return this.#owners;
  }

  addSandbox(sandbox: PodSandbox & Made): void {
    const { id, metadata, state, createdAt } = sandbox;
    if (!this.#isNew(id)) return;
    if (!metadata?.uid) {
      this.#anomalies.report(metadata ? "sandboxWithoutUid" : "sandboxWithoutMetadata", id);
      return;
    }
    const pod = this.#pod(metadata);
    this.#owners.set(id, pod);
    sandbox.listed ??= {
      id,
      name: "",
      kind: "sandbox",
      state: sandboxState(state, id, this.#anomalies),
      attempt: metadata.attempt,
      createdAt,
    };
    pod.sandboxes.push(sandbox.listed);
  }

  /** Adds a container to the pod of its sandbox. Returns false if the sandbox is unknown; see `adopt`. */
  addContainer(container: Container): boolean {
    const owner = this.#owners.get(container.podSandboxId);
    if (!owner) return false;
    this.adopt(container, owner);
    return true;
  }

  /** Adds a container to a given pod. */
  adopt(container: Container & Made, owner: PodIdentity): void {
    const { id, metadata, state, createdAt } = container;
    if (!this.#isNew(id)) return;
    const pod = this.#pod(owner);
    this.#owners.set(id, pod);
    container.listed ??= {
      id,
      name: metadata?.name ?? "",
      kind: "container",
      state: containerState(state, id, this.#anomalies),
      attempt: metadata?.attempt ?? 0,
      createdAt,
    };
    pod.containers.push(container.listed);
  }

  /**
   * Returns the pods. Their items are sorted newest first, because runtimes list in any order and lists of an
   * unchanged pod must be equal.
   */
  pods(): Pod[] {
    const pods = [...this.#pods.values()];
    for (const { sandboxes, containers } of pods) {
      sortNewestFirst(sandboxes);
      sortNewestFirst(containers);
    }
    return pods;
  }

  #pod({ uid, name, namespace }: PodIdentity): GrowingPod {
    let pod = this.#pods.get(uid);
    if (!pod) {
      pod = { uid, name, namespace, sandboxes: [], containers: [] };
      this.#pods.set(uid, pod);
    }
    return pod;
  }

  #isNew(id: string): boolean {
    if (id === "") {
      this.#anomalies.report("itemWithoutId", id);
      return false;
    }
    if (this.#owners.has(id)) {
      this.#anomalies.report("duplicateId", id);
      return false;
    }
    return true;
  }
}

// Most lists are already in this order. Sorting them would cause an allocation for each.
function sortNewestFirst(items: ListedContainer[]): void {
  const isSorted = items.every((item, at) => at === 0 || newestFirst(items[at - 1]!, item) <= 0);
  if (!isSorted) items.sort(newestFirst);
}

/** Sort order: creation time, then attempt, then ID, all descending. */
export function newestFirst(one: ListedContainer, other: ListedContainer): number {
  if (one.createdAt !== other.createdAt) return one.createdAt > other.createdAt ? -1 : 1;
  if (one.attempt !== other.attempt) return other.attempt - one.attempt;
  return one.id < other.id ? -1 : 1;
}
