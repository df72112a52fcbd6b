import { type Clock, type Logger, messageOf, type Timer } from "@nodekeeper/core/lib";
import type { ContainerState, ListedContainer, Pod } from "../runtime/index.ts";
import type { LifecycleStore, StoredEvent, StoredRecord } from "../state/index.ts";
import type { EventLog } from "./event-log.ts";
import type { NewEvent, PodLifecycleEvent, PodLifecycleEventType } from "./events.ts";
import type { PodRecord, PodRecords } from "./records.ts";

export interface JournalOptions {
  events: EventLog;
  /** State database; without it nothing is persisted. */
  store: LifecycleStore | undefined;
  /** Number of events retained in the database. */
  capacity: number;
  clock: Clock;
  log: Logger;
  onFailure: () => void;
}

// Trimming with every write would cause an additional page write each time.
const TRIM_EVERY = 1_000;
// Each retry writes everything unsaved: on a nearly full disk, 20,000 events take 0.1 s to fail.
const RETRY_MS = 5_000;

/**
 * Appends events to the log and persists them, together with the pods' records, in one transaction, so that each change
 * is emitted exactly once also after a crash. A failed write is retried together with later events.
 */
export class Journal {
  readonly #options: JournalOptions;
  #unsavedEvents: StoredEvent[] = [];
  readonly #unsavedRecords = new Map<string, StoredRecord>();
  #failing = false;
  #trimmedAt = 0;
  #retry: Timer | undefined;
  // The stored log could not be restored, and its sequence numbers conflict with new ones.
  #isStale = false;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** Restores the log and records of an earlier agent process. Returns false if there are none. */
  restore(records: PodRecords): boolean {
    const { store, events, log, capacity } = this.#options;
    if (!store) return false;
    try {
      const kept = store.log();
      if (!kept) return false;
      events.restore(kept.id, kept.last, mapEvents(store.events(capacity)));
      for (const { podUid, record } of store.records()) restoreRecord(records, podUid, record, log);
      // Their sequence numbers are reused, so earlier positions must not be valid.
      if (store.mayHaveLostEvents) events.renew();
      this.#trimmedAt = kept.last;
      return true;
    } catch (error) {
      this.#isStale = true;
      this.#failed(error);
      return false;
    }
  }

  /** Records that all pods have been read: an agent started later emits differences as events. */
  begin(): void {
    this.#save();
  }

  /** Appends events of a pod and saves its record, or deletes it if the pod was removed. */
  commit(record: PodRecord, added: readonly NewEvent[]): void {
    const { events, store } = this.#options;
    const appended = events.append(added);
    if (!store) return;
    for (const event of appended) this.#unsavedEvents.push(storedEvent(event));
    const podUid = record.identity.uid;
    this.#unsavedRecords.set(podUid, { podUid, record: record.emitted && encodeRecord(record) });
    if (!this.#retry) this.#save();
  }

  /** Saves everything unsaved, without retries. */
  close(): void {
    if (!this.#retry) return;
    this.#save();
    this.#retry?.cancel();
    this.#retry = undefined;
  }

  #save(): void {
    const { events, store, capacity } = this.#options;
    if (!store) return;
    this.#retry?.cancel();
    this.#retry = undefined;
    const trim = events.last - this.#trimmedAt >= TRIM_EVERY;
    try {
      if (this.#isStale) store.clear();
      this.#isStale = false;
      const trimTo = trim ? events.last - capacity : 0;
      store.save(
        { id: events.id, last: events.last },
        this.#unsavedEvents,
        [...this.#unsavedRecords.values()],
        trimTo,
      );
      if (trim) this.#trimmedAt = events.last;
      this.#unsavedEvents = [];
      this.#unsavedRecords.clear();
      if (this.#failing) this.#options.log.info({}, "lifecycle event log saved again after failures");
      this.#failing = false;
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    const { events, log, capacity, clock, onFailure } = this.#options;
    onFailure();
    this.#retry = clock.after(RETRY_MS, () => this.#save());
    if (this.#unsavedEvents.length > capacity)
      this.#unsavedEvents.splice(0, this.#unsavedEvents.length - capacity);
    if (this.#failing) return;
    this.#failing = true;
    // After a crash, sequence numbers of unsaved events would be reused, so their positions must not be valid.
    events.renew();
    log.error(
      { errorId: "NK1105", err: error },
      "failed to save lifecycle event log, continuing in memory and retrying",
    );
  }
}

function storedEvent({
  sequence,
  at,
  type,
  pod,
  container,
  exitCode,
  reason,
}: PodLifecycleEvent): StoredEvent {
  return {
    sequence,
    at,
    type,
    podUid: pod.uid,
    namespace: pod.namespace,
    name: pod.name,
    containerId: container?.id,
    containerName: container?.name,
    containerKind: container?.kind,
    exitCode,
    reason,
  };
}

// Events share identity objects, as newly created events do.
function* mapEvents(rows: Iterable<StoredEvent>): Iterable<PodLifecycleEvent> {
  const pods = new Map<string, PodLifecycleEvent["pod"]>();
  const containers = new Map<string, PodLifecycleEvent["container"]>();
  for (const row of rows) {
    const uid = row.podUid;
    const pod = pods.get(uid) ?? { uid, namespace: row.namespace, name: row.name };
    pods.set(uid, pod);
    let container: PodLifecycleEvent["container"];
    if (row.containerId !== undefined) {
      const kind = row.containerKind === "sandbox" ? "sandbox" : "container";
      container = containers.get(row.containerId) ?? {
        id: row.containerId,
        name: row.containerName ?? "",
        kind,
      };
      containers.set(row.containerId, container);
    }
    const { sequence, at, exitCode } = row;
    yield {
      sequence,
      at,
      type: row.type as PodLifecycleEventType,
      pod,
      container,
      exitCode,
      reason: row.reason,
    };
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
    // Its containers will be emitted as started.
    log.warn(
      { errorId: "NK1103", podUid: uid, err: messageOf(error) },
      "failed to restore the record of a pod",
    );
  }
}

function keptContainer(kept: KeptContainer): ListedContainer {
  return { ...kept, state: kept.state as ContainerState, createdAt: BigInt(kept.createdAt) };
}
