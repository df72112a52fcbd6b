import type { StatementSync } from "node:sqlite";
import type { StateDatabase } from "./database.ts";

/** An event of the lifecycle log. Times are wall milliseconds. */
export interface StoredEvent {
  sequence: number;
  at: number;
  type: string;
  podUid: string;
  namespace: string;
  name: string;
  /** The three are undefined for an event of the whole pod. */
  containerId: string | undefined;
  containerName: string | undefined;
  containerKind: string | undefined;
  exitCode: number | undefined;
  reason: string;
}

/** The last known record of a pod; `record` is the writer's own text, undefined when the pod no longer exists. */
export interface StoredRecord {
  podUid: string;
  record: string | undefined;
}

/** The log and the records it leads up to, written together: after a crash they agree. */
export class LifecycleStore {
  readonly #database: StateDatabase;
  readonly #addEvent: StatementSync;
  readonly #saveRecord: StatementSync;
  readonly #dropRecord: StatementSync;
  readonly #saveLog: StatementSync;
  readonly #trim: StatementSync;

  constructor(database: StateDatabase) {
    this.#database = database;
    const { connection } = database;
    this.#addEvent = connection.prepare(
      `INSERT INTO lifecycle_event
         (sequence, at, type, pod_uid, namespace, name, container_id, container_name, container_kind, exit_code, reason)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#saveRecord = connection.prepare(
      `INSERT INTO lifecycle_record (pod_uid, record) VALUES (?, ?)
       ON CONFLICT (pod_uid) DO UPDATE SET record = excluded.record`,
    );
    this.#dropRecord = connection.prepare("DELETE FROM lifecycle_record WHERE pod_uid = ?");
    this.#saveLog = connection.prepare(
      `INSERT INTO lifecycle_log (one, id, last) VALUES (1, ?, ?)
       ON CONFLICT (one) DO UPDATE SET id = excluded.id, last = excluded.last`,
    );
    this.#trim = connection.prepare("DELETE FROM lifecycle_event WHERE sequence <= ?");
  }

  /** Whether events that consumers have read may be missing: the machine went down while the file was open. */
  get mayHaveLostEvents(): boolean {
    return this.#database.mayHaveLostCommits;
  }

  /** The log's id and its last sequence number; undefined before the first write. */
  log(): { id: string; last: number } | undefined {
    const row = this.#database.connection.prepare("SELECT id, last FROM lifecycle_log").get();
    return row && { id: row.id as string, last: row.last as number };
  }

  /** The newest events, at most `limit`, oldest first. */
  *events(limit: number): IterableIterator<StoredEvent> {
    const rows = this.#database.connection
      .prepare(
        "SELECT * FROM (SELECT * FROM lifecycle_event ORDER BY sequence DESC LIMIT ?) ORDER BY sequence",
      )
      .iterate(limit);
    for (const row of rows) {
      yield {
        sequence: row.sequence as number,
        at: row.at as number,
        type: row.type as string,
        podUid: row.pod_uid as string,
        namespace: row.namespace as string,
        name: row.name as string,
        containerId: (row.container_id as string | null) ?? undefined,
        containerName: (row.container_name as string | null) ?? undefined,
        containerKind: (row.container_kind as string | null) ?? undefined,
        exitCode: (row.exit_code as number | null) ?? undefined,
        reason: row.reason as string,
      };
    }
  }

  records(): { podUid: string; record: string }[] {
    const rows = this.#database.connection.prepare("SELECT pod_uid, record FROM lifecycle_record").all();
    return rows.map((row) => ({ podUid: row.pod_uid as string, record: row.record as string }));
  }

  /**
   * Writes events and the records they lead up to in one transaction, and deletes events up to `trimTo`.
   * Throws when the disk is full; nothing is changed then.
   */
  save(
    log: { id: string; last: number },
    events: readonly StoredEvent[],
    records: readonly StoredRecord[],
    trimTo: number,
  ): void {
    this.#database.transaction(() => {
      for (const event of events) {
        this.#addEvent.run(
          event.sequence,
          event.at,
          event.type,
          event.podUid,
          event.namespace,
          event.name,
          event.containerId ?? null,
          event.containerName ?? null,
          event.containerKind ?? null,
          event.exitCode ?? null,
          event.reason,
        );
      }
      for (const { podUid, record } of records) {
        if (record === undefined) this.#dropRecord.run(podUid);
        else this.#saveRecord.run(podUid, record);
      }
      this.#saveLog.run(log.id, log.last);
      if (trimTo > 0) this.#trim.run(trimTo);
    });
  }

  /** Deletes everything, for a log that can't be continued. */
  clear(): void {
    this.#database.transaction(() => {
      this.#database.connection.exec(
        "DELETE FROM lifecycle_event; DELETE FROM lifecycle_record; DELETE FROM lifecycle_log",
      );
    });
  }
}
