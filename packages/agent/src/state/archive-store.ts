import type { Clock } from "@nodekeeper/core/lib";
import { type ArchiveKind, queueSources } from "./archive-sources.ts";
import type { StateDatabase } from "./database.ts";
import { Store } from "./store.ts";

export type { ArchiveKind } from "./archive-sources.ts";

/** A record that is to be exported. */
export interface QueuedRecord {
  /** Position in the queue: increases by one. */
  id: number;
  /** Identifies the record: 32 hexadecimal digits, the same however often it is exported. */
  record: string;
  kind: ArchiveKind;
  /** Milliseconds since the epoch. */
  at: number;
  /** Of the row in the kind's table: a round's ID, a pod's UID. */
  key: string;
  /** JSON; null for a round or a pod, which are read from their stores. */
  body: string | null;
}

/** Body of a `gap`: records that were deleted before they were exported. */
export interface ArchiveGap {
  /** Milliseconds since the epoch, both inclusive. */
  from: number;
  to: number;
  why: string;
  records: number;
}

/** Records beyond these bounds are replaced by a gap, oldest first. */
export interface QueueBounds {
  records: number;
  /** Of the bodies in the queue. */
  bytes: number;
}

const TRIMMED_AT_ONCE = 0.1;

/**
 * The queue of records to export, in the state database.
 *
 * 1. A record is queued in the transaction that writes it, so each record is queued exactly once.
 * 2. A queued record survives the agent until `remove`. Its ID stays the same, also in a copy of the database.
 * 3. The order is that of the commits.
 * 4. Nothing is queued before `start`. Rows from before are queued by `start`, as far as they are kept.
 */
export class ArchiveStore extends Store {
  readonly #clock: Clock;

  constructor(database: StateDatabase, clock: Clock) {
    super(database);
    this.#clock = clock;
  }

  /** Starts to queue records. Call it once. Throws if the disk is full; nothing is queued then. */
  start(): void {
    const { database } = this;
    database.connection.function("archive_now", () => Math.floor(this.#clock.now()));
    database.transaction(() => queueSources(database));
  }

  /** Returns the oldest records after a position, at most `limit`. */
  next(after: number, limit: number): QueuedRecord[] {
    return this.database.all(
      "SELECT id, record, kind, at, key, body FROM archive_queue WHERE id > ? ORDER BY id LIMIT ?",
      ...[after, limit],
    );
  }

  /** Removes exported records, up to a position. Throws if the disk is full; they are exported again then. */
  remove(upTo: number): void {
    this.database.transaction(() => this.database.run("DELETE FROM archive_queue WHERE id <= ?", upTo));
  }

  /** Returns the number of queued records, and the time of the oldest; undefined if there is none. */
  backlog(): { records: number; oldestAt: number | undefined } {
    const row = this.database.first<{ records: number; oldestAt: number | null }>(
      "SELECT count(*) AS records, (SELECT at FROM archive_queue ORDER BY id LIMIT 1) AS oldestAt FROM archive_queue",
    )!;
    return { records: row.records, oldestAt: row.oldestAt ?? undefined };
  }

  /**
   * Replaces the oldest records by a gap if there are too many, and a tenth more. Returns the number of records that
   * were lost.
   */
  trim({ records, bytes }: QueueBounds, why: string): number {
    const size = this.database.first<{ records: number; bytes: number }>(
      "SELECT count(*) AS records, coalesce(sum(length(body)), 0) AS bytes FROM archive_queue",
    )!;
    const share = Math.min(records / size.records, bytes / size.bytes);
    if (!(share < 1)) return 0;
    const surplus = Math.ceil(size.records * (1 - share * (1 - TRIMMED_AT_ONCE)));
    const last = this.database.first<{ id: number }>(
      "SELECT id FROM archive_queue ORDER BY id LIMIT 1 OFFSET ?",
      Math.min(surplus, size.records) - 1,
    )!;
    return this.lose(0, last.id, why);
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
        `UPDATE archive_queue SET record = lower(hex(randomblob(16))), kind = 'gap', at = ?, key = '', body = ?
         WHERE id = ?`,
        ...[gap.to, JSON.stringify(gap), to],
      );
      return lost.records;
    });
  }
}
