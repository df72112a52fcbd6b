import type { ContainerIdentity, PodIdentity } from "@nodekeeper/api/lifecycle";
import type { ListedContainer, Pod } from "../runtime/index.ts";
import { SharedTexts } from "./shared-texts.ts";

/** The last emitted state of a pod. */
export interface PodRecord {
  /** The reading up to which events were emitted. Undefined before the first. */
  emitted: Pod | undefined;
  /** Last known IPs. */
  ips: readonly string[];
  /** Shared by the pod's latest events. */
  readonly identity: PodIdentity;
  readonly containers: Map<string, ContainerIdentity>;
  /** Shared by all records. */
  readonly texts: SharedTexts;
}

/**
 * Why a pod must be read again soon. `failed`: its inspection failed. `inconsistent`: its list and its
 * inspection contradict each other.
 */
export type Mark = "failed" | "inconsistent";

/** The last emitted state of each pod, and the pods that must be read again. */
export class PodRecords {
  readonly #records = new Map<string, PodRecord>();
  readonly #marks = new Map<string, Mark>();
  // Pods whose inspection failed, as last listed.
  readonly #uninspected = new Map<string, Pod>();
  readonly #texts = new SharedTexts();

  get size(): number {
    return this.#records.size;
  }

  get(uid: string): PodRecord | undefined {
    return this.#records.get(uid);
  }

  /** Returns the record of a pod. Creates it if it does not exist. */
  open(pod: Pod): PodRecord {
    const known = this.#records.get(pod.uid);
    if (known) return known;
    const identity = { uid: pod.uid, namespace: pod.namespace, name: pod.name };
    const record: PodRecord = {
      emitted: undefined,
      ips: [],
      identity,
      containers: new Map(),
      texts: this.#texts,
    };
    this.#records.set(pod.uid, record);
    return record;
  }

  forget(uid: string): void {
    this.#records.delete(uid);
    this.unmark(uid);
  }

  mark(uid: string, mark: Mark): void {
    // `failed` leads to a PodSync event, so `inconsistent` must not replace it.
    if (this.#marks.get(uid) !== "failed") this.#marks.set(uid, mark);
  }

  /** Marks a pod whose inspection failed. */
  fail(uid: string, listed: Pod | undefined): void {
    this.mark(uid, "failed");
    if (listed) this.#uninspected.set(uid, listed);
  }

  /** Returns a pod whose inspection failed, as last listed. */
  uninspected(uid: string): Pod | undefined {
    return this.#uninspected.get(uid);
  }

  markOf(uid: string): Mark | undefined {
    return this.#marks.get(uid);
  }

  unmark(uid: string): void {
    this.#marks.delete(uid);
    this.#uninspected.delete(uid);
  }

  /** Returns the UIDs of the pods to read again soon. */
  marked(): string[] {
    return [...this.#marks.keys()];
  }

  /** Number of pods whose last inspection failed. */
  get failed(): number {
    let count = 0;
    for (const mark of this.#marks.values()) if (mark === "failed") count++;
    return count;
  }

  uids(): string[] {
    return [...this.#records.keys()];
  }

  /** Returns all pods as last emitted. */
  emitted(): Pod[] {
    const pods: Pod[] = [];
    for (const { emitted } of this.#records.values()) if (emitted) pods.push(emitted);
    return pods;
  }
}

/** Returns the identity of a container for events. All events of a container share the same object. */
export function containerIdentity(record: PodRecord, { id, name, kind }: ListedContainer): ContainerIdentity {
  const known = record.containers.get(id);
  if (known) return known;
  const identity = { id, name: record.texts.share(name), kind };
  record.containers.set(id, identity);
  return identity;
}
