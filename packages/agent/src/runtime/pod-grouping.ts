import type { Container, PodSandbox } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { Oddities } from "./oddities.ts";
import type { PodIdentity } from "./owners.ts";
import { containerState, sandboxState } from "./states.ts";
import type { ListedContainer, Pod } from "./types.ts";

// An item that did not change since the last list is the same object, and so is what was made of it.
interface Made {
  listed?: ListedContainer;
}

interface GrowingPod extends PodIdentity {
  sandboxes: ListedContainer[];
  containers: ListedContainer[];
}

/** Makes pods of sandboxes and containers. What belongs to no pod is left out and counted. */
export class PodGrouping {
  readonly #oddities: Oddities;
  readonly #pods = new Map<string, GrowingPod>();
  readonly #owners = new Map<string, PodIdentity>();

  constructor(oddities: Oddities) {
    this.#oddities = oddities;
  }

  /** The pod of everything that was added, by ID. */
  get owners(): ReadonlyMap<string, PodIdentity> {
    return this.#owners;
  }

  addSandbox(sandbox: PodSandbox & Made): void {
    const { id, metadata, state, createdAt } = sandbox;
    if (!this.#isNew(id)) return;
    if (!metadata?.uid) {
      this.#oddities.report(metadata ? "sandboxWithoutUid" : "sandboxWithoutMetadata", id);
      return;
    }
    const pod = this.#pod(metadata);
    this.#owners.set(id, pod);
    sandbox.listed ??= {
      id,
      name: "",
      kind: "sandbox",
      state: sandboxState(state, id, this.#oddities),
      attempt: metadata.attempt,
      createdAt,
    };
    pod.sandboxes.push(sandbox.listed);
  }

  /** Adds a container to the pod of its sandbox; false where the sandbox is not here, see `adopt`. */
  addContainer(container: Container): boolean {
    const owner = this.#owners.get(container.podSandboxId);
    if (!owner) return false;
    this.adopt(container, owner);
    return true;
  }

  /** Adds a container to a pod that is known by other means. */
  adopt(container: Container & Made, owner: PodIdentity): void {
    const { id, metadata, state, createdAt } = container;
    if (!this.#isNew(id)) return;
    const pod = this.#pod(owner);
    this.#owners.set(id, pod);
    container.listed ??= {
      id,
      name: metadata?.name ?? "",
      kind: "container",
      state: containerState(state, id, this.#oddities),
      attempt: metadata?.attempt ?? 0,
      createdAt,
    };
    pod.containers.push(container.listed);
  }

  /** Newest first: runtimes list in any order, and readings of an unchanged pod should be alike. */
  pods(): Pod[] {
    const pods = [...this.#pods.values()];
    for (const { sandboxes, containers } of pods) {
      if (sandboxes.length > 1) sandboxes.sort(newestFirst);
      if (containers.length > 1) containers.sort(newestFirst);
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
      this.#oddities.report("itemWithoutId", id);
      return false;
    }
    if (this.#owners.has(id)) {
      this.#oddities.report("duplicateId", id);
      return false;
    }
    return true;
  }
}

/** For sorting: by creation, then by attempt, then by ID. */
export function newestFirst(one: ListedContainer, other: ListedContainer): number {
  if (one.createdAt !== other.createdAt) return one.createdAt > other.createdAt ? -1 : 1;
  if (one.attempt !== other.attempt) return other.attempt - one.attempt;
  return one.id < other.id ? -1 : 1;
}
