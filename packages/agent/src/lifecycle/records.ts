import type { ListedContainer, Pod } from "../runtime/index.ts";
import type { ContainerIdentity, PodIdentity } from "./events.ts";
import { SharedTexts } from "./shared-texts.ts";

/** What was last believed and told of a pod. */
export interface PodRecord {
  /** The reading that the events so far lead up to; undefined until the first one was told. */
  told: Pod | undefined;
  /** Last known addresses. */
  ips: readonly string[];
  /** Events of the pod share these, so that a log of many events keeps one copy of each name. */
  readonly identity: PodIdentity;
  readonly containers: Map<string, ContainerIdentity>;
  /** Of all records. */
  readonly texts: SharedTexts;
}

/**
 * Why a pod must be read again soon: `failed`, it could not be inspected; `doubted`, its list and its inspection
 * said different things.
 */
export type Mark = "failed" | "doubted";

/** The pods of the node as they were told, and those of which something is still to be told. */
export class PodRecords {
  readonly #records = new Map<string, PodRecord>();
  readonly #marks = new Map<string, Mark>();
  readonly #texts = new SharedTexts();

  get size(): number {
    return this.#records.size;
  }

  get(uid: string): PodRecord | undefined {
    return this.#records.get(uid);
  }

  /** The record of a pod of which something is to be told, made where there is none. */
  open(pod: Pod): PodRecord {
    const known = this.#records.get(pod.uid);
    if (known) return known;
    const identity = { uid: pod.uid, namespace: pod.namespace, name: pod.name };
    const record: PodRecord = {
      told: undefined,
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
    this.#marks.delete(uid);
  }

  mark(uid: string, mark: Mark): void {
    // A failed inspection ends in PodSync; a doubt must not hide that.
    if (this.#marks.get(uid) !== "failed") this.#marks.set(uid, mark);
  }

  markOf(uid: string): Mark | undefined {
    return this.#marks.get(uid);
  }

  unmark(uid: string): void {
    this.#marks.delete(uid);
  }

  /** Pods to be read again soon. */
  marked(): string[] {
    return [...this.#marks.keys()];
  }

  /** How many pods could not be inspected when they last changed. */
  get failed(): number {
    let count = 0;
    for (const mark of this.#marks.values()) if (mark === "failed") count++;
    return count;
  }

  uids(): string[] {
    return [...this.#records.keys()];
  }

  /** Every pod as it was last told. */
  told(): Pod[] {
    const pods: Pod[] = [];
    for (const { told } of this.#records.values()) if (told) pods.push(told);
    return pods;
  }
}

/** The identity of a container for events: the same object for every event of the container. */
export function containerIdentity(record: PodRecord, { id, name, kind }: ListedContainer): ContainerIdentity {
  const known = record.containers.get(id);
  if (known) return known;
  const identity = { id, name: record.texts.share(name), kind };
  record.containers.set(id, identity);
  return identity;
}
