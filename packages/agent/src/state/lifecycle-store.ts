import { Store } from "./store.ts";

/** An event of the lifecycle log. Times are in milliseconds since the epoch. */
export interface StoredEvent {
  sequence: number;
  at: number;
  type: string;
  podUid: string;
  namespace: string;
  name: string;
  /** Null, like the next two, for an event of the whole pod. */
  containerId: string | null;
  containerName: string | null;
  containerKind: string | null;
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

  /** Returns the latest `limit` events, oldest first. */
  events(limit: number): IterableIterator<StoredEvent> {
    return this.database.each(
      `SELECT sequence, at, type, pod_uid AS podUid, namespace, name, container_id AS containerId,
         container_name AS containerName, container_kind AS containerKind, exit_code AS exitCode, reason
       FROM (SELECT * FROM lifecycle_event ORDER BY sequence DESC LIMIT ?) ORDER BY sequence`,
      limit,
    );
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
      this.database.run(
        "INSERT OR REPLACE INTO lifecycle_log (one, id, last) VALUES (1, ?, ?)",
        log.id,
        log.last,
      );
      if (trimTo > 0) this.database.run("DELETE FROM lifecycle_event WHERE sequence <= ?", trimTo);
    }, "lifecycle");
  }

  #addEvent({ sequence, at, type, podUid, namespace, name, ...rest }: StoredEvent): void {
    const { containerId, containerName, containerKind, exitCode, reason } = rest;
    this.database.run(
      `INSERT INTO lifecycle_event
         (sequence, at, type, pod_uid, namespace, name, container_id, container_name, container_kind, exit_code, reason)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[sequence, at, type, podUid, namespace, name],
      ...[containerId, containerName, containerKind, exitCode, reason],
    );
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
