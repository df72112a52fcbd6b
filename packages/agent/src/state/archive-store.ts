import { createHash } from "node:crypto";
import type { Clock } from "@nodekeeper/core/lib";
import { type ArchiveKind, queueSources } from "./archive-sources.ts";
import type { StateDatabase } from "./database.ts";
import { Store } from "./store.ts";

export type { ArchiveKind } from "./archive-sources.ts";

/** A record that is to be exported. */
export interface QueuedRecord {
  /** Position in the queue: increases by one. */
  id: number;
  /** Identifies the record among those of all nodes: 32 hexadecimal digits, the same however often it is exported. */
  record: string;
  kind: ArchiveKind;
  /** Milliseconds since the epoch. */
  at: number;
  /** Of the row in the kind's table: a round's ID, a pod's UID. */
  key: string;
  /** JSON; null for a round or a pod, which are read from their stores. */
  body: string | null;
}

/** Body of a `gap`: records that were deleted before they were exported, or that the collector refused. */
export interface ArchiveGap {
  /** Milliseconds since the epoch, both inclusive. */
  from: number;
  to: number;
  why: string;
  records: number;
}

/** A trace that is to be exported. */
export interface QueuedTrace {
  /** Position in the queue of traces. */
  id: number;
  /** `ScopeSpans` of OTLP, without a scope. */
  spans: Uint8Array;
}

/** Records beyond these bounds are replaced by a gap, oldest first. Traces have the same bounds, and are deleted. */
export interface QueueBounds {
  records: number;
  /** Of the bodies in the queue. */
  bytes: number;
}

const TRIMMED_AT_ONCE = 0.1;

/**
 * The queue of records to export, in the state database.
 *
 * 1. A record is queued in the transaction that writes it, so no committed record is missed.
 * 2. A queued record persists across restarts until `remove`. Its ID is derived from its row, so it is the same if
 *    the row is queued again because the queue was lost, or was kept in memory by an agent that could not write the
 *    file.
 * 3. The order is that of the commits.
 * 4. Nothing is queued before `start`. Rows from before are queued by `start`, as far as they are kept.
 * 5. A trace is queued in the transaction that removes its last record, and survives the agent until `removeTraces`.
 */
export class ArchiveStore extends Store {
  readonly #clock: Clock;

  readonly #nodeName: string;

  constructor(database: StateDatabase, clock: Clock, nodeName: string) {
    super(database);
    this.#clock = clock;
    this.#nodeName = nodeName;
  }

  /** Starts to queue records. Call it once. Throws if the disk is full; nothing is queued then. */
  start(): void {
    const { database } = this;
    database.connection.function("archive_now", () => Math.floor(this.#clock.now()));
    database.connection.function("archive_id", { varargs: true }, (...values) =>
      createHash("sha256")
        .update(JSON.stringify([this.#nodeName, ...values]))
        .digest("hex")
        .slice(0, 32),
    );
    database.transaction(() => queueSources(database));
  }

  /** Returns the oldest records after a position, at most `limit`. */
  next(after: number, limit: number): QueuedRecord[] {
    return this.database.all(
      "SELECT id, record, kind, at, key, body FROM archive_queue WHERE id > ? ORDER BY id LIMIT ?",
      ...[after, limit],
    );
  }

  /**
   * Removes records up to a position, and queues their traces, and gaps for those that were not exported. Throws if the
   * disk is full; they are exported again then.
   */
  remove(upTo: number, traces: readonly QueuedTrace["spans"][] = [], gaps: readonly ArchiveGap[] = []): void {
    const { database } = this;
    database.transaction(() => {
      database.run("DELETE FROM archive_queue WHERE id <= ?", upTo);
      for (const spans of traces) database.insert("archive_trace", { spans });
      for (const gap of gaps)
        database.run(
          `INSERT INTO archive_queue (record, kind, at, key, body)
           VALUES (archive_id('gap', ?1, ?2), 'gap', ?1, '', ?2)`,
          ...[gap.to, JSON.stringify(gap)],
        );
    });
  }

  /** Returns the oldest traces after a position, at most `limit`. */
  traces(after: number, limit: number): QueuedTrace[] {
    return this.database.all(
      "SELECT id, spans FROM archive_trace WHERE id > ? ORDER BY id LIMIT ?",
      ...[after, limit],
    );
  }

  /** Removes exported traces, up to a position. Throws if the disk is full; they are exported again then. */
  removeTraces(upTo: number): number {
    const { database } = this;
    return database.transaction(() => database.run("DELETE FROM archive_trace WHERE id <= ?", upTo));
  }

  /** Returns the number of queued records. Reads all of them. */
  queuedRecords(): number {
    return this.database.first<{ rows: number }>("SELECT count(*) AS rows FROM archive_queue")!.rows;
  }

  /** Returns the number of queued traces. Reads all of them. */
  queuedTraces(): number {
    return this.database.first<{ rows: number }>("SELECT count(*) AS rows FROM archive_trace")!.rows;
  }

  /** Returns the time of the oldest queued record, milliseconds since the epoch. Undefined if there is none. */
  oldestAt(): number | undefined {
    return this.database.first<{ at: number }>("SELECT at FROM archive_queue ORDER BY id LIMIT 1")?.at;
  }

  /**
   * If the queue exceeds its bounds, replaces the oldest records by a gap until it is a tenth below the bounds. Returns
   * the number of lost records.
   */
  trim(bounds: QueueBounds, why: string): number {
    const last = this.#lastBeyond("archive_queue", "body", bounds);
    return last === undefined ? 0 : this.lose(0, last, why);
  }

  /** Deletes the oldest traces if there are too many, and a tenth more. Returns their number. */
  trimTraces(bounds: QueueBounds): number {
    const last = this.#lastBeyond("archive_trace", "spans", bounds);
    return last === undefined ? 0 : this.removeTraces(last);
  }

  // Returns the position up to which rows are beyond the bounds. Undefined if none are.
  #lastBeyond(table: string, column: string, { records, bytes }: QueueBounds): number | undefined {
    const size = this.database.first<{ rows: number; bytes: number }>(
      `SELECT count(*) AS rows, coalesce(sum(length(${column})), 0) AS bytes FROM ${table}`,
    )!;
    const share = Math.min(records / size.rows, bytes / size.bytes);
    if (!(share < 1)) return undefined;
    const surplus = Math.ceil(size.rows * (1 - share * (1 - TRIMMED_AT_ONCE)));
    return this.database.first<{ id: number }>(
      `SELECT id FROM ${table} ORDER BY id LIMIT 1 OFFSET ?`,
      Math.min(surplus, size.rows) - 1,
    )?.id;
  }

  /**
   * Replaces the records between two positions, inclusive, by one gap, which is a new record. Gaps among them are
   * added. Returns the number of records that were lost by this call.
   */
  lose(from: number, to: number, why: string): number {
    const { database } = this;
    return database.transaction(() => {
      const lost = database.first<{ from: number | null; to: number; records: number; before: number }>(
        `SELECT min(CASE kind WHEN 'gap' THEN coalesce(body ->> 'from', at) ELSE at END) AS "from",
           max(CASE kind WHEN 'gap' THEN coalesce(body ->> 'to', at) ELSE at END) AS "to",
           count(*) FILTER (WHERE kind <> 'gap') AS records,
           coalesce(sum(body ->> 'records') FILTER (WHERE kind = 'gap'), 0) AS before
         FROM archive_queue WHERE id BETWEEN ? AND ?`,
        ...[from, to],
      )!;
      if (lost.from === null) return 0;
      const gap: ArchiveGap = { from: lost.from, to: lost.to, why, records: lost.records + lost.before };
      database.run("DELETE FROM archive_queue WHERE id >= ? AND id < ?", from, to);
      database.run(
        `UPDATE archive_queue SET record = archive_id('gap', ?1, ?2), kind = 'gap', at = ?1, key = '', body = ?2
         WHERE id = ?3`,
        ...[gap.to, JSON.stringify(gap), to],
      );
      return lost.records;
    });
  }
}
