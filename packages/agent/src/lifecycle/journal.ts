import { StateDamaged } from "@nodekeeper/api/errors";
import { type Logger, messageOf } from "@nodekeeper/core/lib";
import type { ContainerState, ListedContainer, Pod } from "../runtime/index.ts";
import { Backlog, type LifecycleStore, type StoredRecord, WriteBehind } from "../state/index.ts";
import type { LifecycleContext } from "./context.ts";
import type { EventLog } from "./event-log.ts";
import type { NewEvent, PodLifecycleEvent } from "./events.ts";
import type { PodRecord, PodRecords } from "./records.ts";

// Trimming with every write would cost an additional page write.
const TRIM_EVERY = 1_000;

/**
 * Appends events to the log and persists them with the pods' records in one transaction, so that each change
 * is emitted exactly once even after a crash. A failed write is retried together with later events.
 */
export class Journal {
  readonly #context: LifecycleContext;
  readonly #log: EventLog;
  readonly #store: LifecycleStore | undefined;
  // Number of events to retain in the database.
  readonly #capacity: number;
  readonly #writes: WriteBehind;
  readonly #events: Backlog<PodLifecycleEvent>;
  readonly #records = new Map<string, StoredRecord>();
  #trimmedAt = 0;
  // The stored log could not be restored, and its sequence numbers conflict with new ones.
  #isStale = false;

  /** @param store if undefined, nothing is persisted */
  constructor(context: LifecycleContext, events: EventLog, store: LifecycleStore | undefined) {
    this.#context = context;
    this.#log = events;
    this.#store = store;
    const { clock, log, settings } = context;
    this.#capacity = Math.min(settings.logCapacity, settings.savedEvents);
    this.#events = new Backlog(this.#capacity);
    const write = () => this.#write();
    const onFailure = (_error: unknown, isFirst: boolean) => this.#failed(isFirst);
    this.#writes = new WriteBehind({ what: "the lifecycle event log", write, clock, log, onFailure });
  }

  /**
   * Restores the log and records of an earlier agent process. Returns undefined if there are none or they can't be
   * read. `mayHaveLostEvents`: whether consumers may have received later events, which were not saved.
   */
  restore(records: PodRecords): { mayHaveLostEvents: boolean } | undefined {
    const store = this.#store;
    const events = this.#log;
    if (!store) return undefined;
    try {
      const kept = store.log();
      if (!kept) return undefined;
      events.restore(kept.id, kept.last, store.events(this.#capacity) as Iterable<PodLifecycleEvent>);
      for (const { podUid, record } of store.records())
        restoreRecord(records, podUid, record, this.#context.log);
      // The sequence numbers of lost events are reused, so earlier positions must be invalid.
      const { mayHaveLostEvents } = store;
      if (mayHaveLostEvents) events.renew();
      this.#trimmedAt = kept.last;
      return { mayHaveLostEvents };
    } catch (error) {
      this.#isStale = true;
      this.#writes.failed(error);
      return undefined;
    }
  }

  /**
   * Records that all pods have been read, before consumers get positions in the log. A later agent process
   * emits differences as events, and continues the log.
   */
  begin(): void {
    if (this.#store) this.#writes.flush();
  }

  /** Appends the events of a pod and saves its record, or deletes the record if the pod was removed. */
  commit(record: PodRecord, added: readonly NewEvent[]): void {
    const appended = this.#log.append(added);
    if (!this.#store) return;
    this.#events.add(...appended);
    const podUid = record.identity.uid;
    this.#records.set(podUid, { podUid, record: record.emitted && encodeRecord(record) });
    if (!this.#writes.isPending) this.#writes.flush();
  }

  /** Saves all unsaved events and records, without retries. */
  close(): void {
    this.#writes.close();
  }

  #write(): void {
    const store = this.#store!;
    const { id, last } = this.#log;
    if (this.#isStale) store.clear();
    this.#isStale = false;
    const trim = last - this.#trimmedAt >= TRIM_EVERY;
    const records = [...this.#records.values()];
    store.save({ id, last }, this.#events.items, records, trim ? last - this.#capacity : 0);
    if (trim) this.#trimmedAt = last;
    this.#events.clear();
    this.#records.clear();
  }

  #failed(isFirst: boolean): void {
    this.#context.metrics.saveFailures.inc();
    this.#events.bound();
    // After a crash, the sequence numbers of unsaved events would be reused, so their positions must be
    // invalid.
    if (isFirst) this.#log.renew();
  }
}

interface KeptContainer extends Omit<ListedContainer, "createdAt"> {
  createdAt: string;
}

interface KeptRecord {
  namespace: string;
  name: string;
  ips: string[];
  containers: KeptContainer[];
  sandboxes: KeptContainer[];
}

function encodeRecord({ emitted, ips }: PodRecord): string {
  const { namespace, name, containers, sandboxes } = emitted!;
  return JSON.stringify({ namespace, name, ips, containers, sandboxes }, (_, value) =>
    typeof value === "bigint" ? value.toString() : value,
  );
}

function restoreRecord(records: PodRecords, uid: string, text: string, log: Logger): void {
  try {
    const { namespace, name, ips, containers, sandboxes } = JSON.parse(text) as KeptRecord;
    const pod: Pod = {
      uid,
      namespace,
      name,
      containers: containers.map(keptContainer),
      sandboxes: sandboxes.map(keptContainer),
    };
    const record = records.open(pod);
    record.emitted = pod;
    record.ips = ips;
  } catch (error) {
    // The pod's containers will be emitted as started.
    log.warn(
      { errorId: StateDamaged.id, podUid: uid, err: messageOf(error) },
      "failed to restore the record of a pod",
    );
  }
}

function keptContainer(kept: KeptContainer): ListedContainer {
  return { ...kept, state: kept.state as ContainerState, createdAt: BigInt(kept.createdAt) };
}
