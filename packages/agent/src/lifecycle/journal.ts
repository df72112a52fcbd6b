import { type Clock, type Logger, messageOf, type Timer } from "@nodekeeper/core/lib";
import type { ContainerState, ListedContainer, Pod } from "../runtime/index.ts";
import type { LifecycleStore, StoredEvent, StoredRecord } from "../state/index.ts";
import type { EventLog } from "./event-log.ts";
import type { NewEvent, PodLifecycleEvent, PodLifecycleEventType } from "./events.ts";
import type { PodRecord, PodRecords } from "./records.ts";

export interface JournalOptions {
  events: EventLog;
  /** Without it nothing outlives the agent. */
  store: LifecycleStore | undefined;
  /** How many events are kept in the store. */
  capacity: number;
  clock: Clock;
  log: Logger;
  onFailure: () => void;
}

// Trimming at every write would touch a page of its own each time.
const TRIM_EVERY = 1_000;
// A try takes all that is not saved yet: on a nearly full disk 20,000 events take 0.1 s to fail.
const RETRY_MS = 5_000;

/**
 * Takes events into the log and, with the records they lead up to, into the state database: in one transaction, so
 * that after a crash each change is told exactly once. A write that fails is tried again with all that came meanwhile.
 */
export class Journal {
  readonly #options: JournalOptions;
  #unsavedEvents: StoredEvent[] = [];
  readonly #unsavedRecords = new Map<string, StoredRecord>();
  #failing = false;
  #trimmedAt = 0;
  #retry: Timer | undefined;
  // What is stored could not be read back, and its sequence numbers are in the way.
  #isStale = false;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** Brings back what an earlier run of the agent told. Gives false where there was none. */
  restore(records: PodRecords): boolean {
    const { store, events, log, capacity } = this.#options;
    if (!store) return false;
    try {
      const kept = store.log();
      if (!kept) return false;
      events.restore(kept.id, kept.last, mapEvents(store.events(capacity)));
      for (const { podUid, record } of store.records()) restoreRecord(records, podUid, record, log);
      // Their numbers will be given to others: positions given so far must not be found.
      if (store.mayHaveLostEvents) events.renew();
      this.#trimmedAt = kept.last;
      return true;
    } catch (error) {
      this.#isStale = true;
      this.#failed(error);
      return false;
    }
  }

  /** From here on the node counts as known: an agent that starts later tells what is different. */
  begin(): void {
    this.#save();
  }

  /** Takes events of a pod and its record; the record of a pod that is gone has nothing told. */
  commit(record: PodRecord, added: readonly NewEvent[]): void {
    const { events, store } = this.#options;
    const appended = events.append(added);
    if (!store) return;
    for (const event of appended) this.#unsavedEvents.push(storedEvent(event));
    const podUid = record.identity.uid;
    this.#unsavedRecords.set(podUid, { podUid, record: record.told && encodeRecord(record) });
    if (!this.#retry) this.#save();
  }

  /** Saves what is left; nothing is tried again after it. */
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
      if (this.#failing) this.#options.log.info({}, "lifecycle log is saved again");
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
    // After a crash now, the numbers of unsaved events would be given to others: their positions must not be found.
    events.renew();
    log.error({ err: error }, "lifecycle log can't be saved; it goes on in memory");
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

// Identities are shared between events here as they are when events are made.
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

function encodeRecord({ told, ips }: PodRecord): string {
  const { namespace, name, containers, sandboxes } = told!;
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
    record.told = pod;
    record.ips = ips;
  } catch (error) {
    // Its containers will be told as if they were new.
    log.warn({ podUid: uid, err: messageOf(error) }, "record of a pod can't be read back");
  }
}

function keptContainer(kept: KeptContainer): ListedContainer {
  return { ...kept, state: kept.state as ContainerState, createdAt: BigInt(kept.createdAt) };
}
