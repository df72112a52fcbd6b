import { Store } from "./store.ts";

/** An event of the lifecycle log. */
export interface StoredEvent {
  readonly sequence: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly type: string;
  readonly pod: { readonly uid: string; readonly namespace: string; readonly name: string };
  /** Undefined for an event of the whole pod. */
  readonly container:
    | { readonly id: string; readonly name: string; readonly kind: "container" | "sandbox" }
    | undefined;
  readonly exitCode: number | undefined;
  readonly reason: string;
}

interface EventRow {
  sequence: number;
  at: number;
  type: string;
  uid: string;
  namespace: string;
  name: string;
  id: string | null;
  containerName: string | null;
  kind: string | null;
  exitCode: number | null;
  reason: string;
}

/**
 * The last known record of a pod. `record` is in the writer's format; undefined if the pod no longer exists.
 */
export interface StoredRecord {
  podUid: string;
  record: string | undefined;
}

/**
 * The event log and the resulting records of pods. They are written together, so they are consistent after a
 * crash.
 */
export class LifecycleStore extends Store {
  /**
   * Whether events that consumers have read may be missing, that is, the opposite is not proven. See
   * `Continuity`.
   */
  get mayHaveLostEvents(): boolean {
    return this.database.mayHaveLostCommits || this.database.standingOf("lifecycle") !== "newest";
  }

  /** Returns the log's ID and its last sequence number. Undefined before the first write. */
  log(): { id: string; last: number } | undefined {
    return this.database.first("SELECT id, last FROM lifecycle_log");
  }

  /** Returns the latest `limit` events, oldest first. Events share the objects of their pods and containers. */
  *events(limit: number): Generator<StoredEvent> {
    const pods = new Map<string, StoredEvent["pod"]>();
    const containers = new Map<string, StoredEvent["container"]>();
    const rows = this.database.each<EventRow>(
      `SELECT sequence, at, type, pod_uid AS uid, namespace, name, container_id AS id,
         container_name AS containerName, container_kind AS kind, exit_code AS exitCode, reason
       FROM (SELECT * FROM lifecycle_event ORDER BY sequence DESC LIMIT ?) ORDER BY sequence`,
      limit,
    );
    for (const row of rows) {
      const { sequence, at, type, uid, namespace, name, id, exitCode, reason } = row;
      const pod = pods.get(uid) ?? { uid, namespace, name };
      pods.set(uid, pod);
      const kind = row.kind === "sandbox" ? row.kind : "container";
      const added = id === null ? undefined : ({ id, name: row.containerName ?? "", kind } as const);
      const container = added && (containers.get(added.id) ?? added);
      if (container) containers.set(container.id, container);
      yield { sequence, at, type, pod, container, exitCode: exitCode ?? undefined, reason };
    }
  }

  records(): { podUid: string; record: string }[] {
    return this.database.all("SELECT pod_uid AS podUid, record FROM lifecycle_record");
  }

  /**
   * Writes events and the resulting records in one transaction, and deletes events up to `trimTo`. Throws if
   * the disk is full; nothing is changed then.
   */
  save(
    log: { id: string; last: number },
    events: readonly StoredEvent[],
    records: readonly StoredRecord[],
    trimTo: number,
  ): void {
    this.database.transaction(() => {
      for (const event of events) this.#addEvent(event);
      for (const record of records) this.#saveRecord(record);
      this.database.insert("lifecycle_log", { one: 1, id: log.id, last: log.last }, "REPLACE");
      if (trimTo > 0) this.database.run("DELETE FROM lifecycle_event WHERE sequence <= ?", trimTo);
    }, "lifecycle");
  }

  #addEvent({ sequence, at, type, pod, container, exitCode, reason }: StoredEvent): void {
    this.database.insert("lifecycle_event", {
      ...{ sequence, at, type, pod_uid: pod.uid, namespace: pod.namespace, name: pod.name },
      ...{ container_id: container?.id, container_name: container?.name, container_kind: container?.kind },
      ...{ exit_code: exitCode, reason },
    });
  }

  #saveRecord({ podUid, record }: StoredRecord): void {
    if (record === undefined) this.database.run("DELETE FROM lifecycle_record WHERE pod_uid = ?", podUid);
    else
      this.database.run(
        `INSERT INTO lifecycle_record (pod_uid, record) VALUES (?, ?)
         ON CONFLICT (pod_uid) DO UPDATE SET record = excluded.record`,
        ...[podUid, record],
      );
  }

  /** Deletes everything, for a log that cannot be continued. */
  clear(): void {
    this.database.transaction(() => {
      this.database.connection.exec(
        "DELETE FROM lifecycle_event; DELETE FROM lifecycle_record; DELETE FROM lifecycle_log",
      );
    });
  }
}
