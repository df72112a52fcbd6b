import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "@nodekeeper/core/lib";
import type { GapMarker } from "./gap-marker.ts";

/** A period in which records may be missing. Milliseconds since the epoch, both inclusive. */
export interface StoredGap {
  from: number;
  to: number;
  why: string;
}

/** The times for which records are complete. Milliseconds since the epoch. */
export interface StoredCoverage {
  /** Start for records with an effect. */
  since: number;
  /** Start for other rounds. */
  requests: number;
  /** Start for marks. */
  marks: number;
  /** Oldest first. */
  gaps: StoredGap[];
}

/** How the last agent that wrote the database ended. Times are in milliseconds since the epoch. */
export interface LastEnd {
  /** Value of `GapMarker`. Undefined if all records were written. */
  unwrittenSince: number | undefined;
  /** Time of the last write of records in the database. Undefined if there was none. */
  savedAt: number | undefined;
  /** Whether later writes may be missing from the database. */
  mayHaveLostCommits: boolean;
  /**
   * Whether an earlier agent did not close the database. If the database contains no coverage, all commits of that
   * agent are missing.
   */
  wasOpen: boolean;
  /** Whether rows of records could not be read. */
  isDamaged?: boolean;
  /** The last sign of life of an agent that was not stopped. Undefined if it was stopped. */
  aliveAt: number | undefined;
}

const MOST_GAPS = 50;
// Three signs of life. A running agent that can write its directory is never silent for longer.
const LONGEST_SILENCE_MS = 90_000;
const whys = {
  unwritten: "the state directory could not be written, and the agent ended before it could",
  lostCommits:
    "the machine went down, or the state directory could not be written, while an agent was running",
  damaged: "rows of the state database could not be read",
  silence: "the agent was killed, or could not write its state directory: it left no sign of life",
} as const;

/**
 * Tracks the times for which records are complete. Only there does the absence of a record count as evidence.
 *
 * 1. A new database is complete since its creation.
 * 2. Trimming a record moves the start forward, at most to now.
 * 3. Records that could not be written before the agent ended are a gap: see `GapMarker`. A disk that became
 *    read-only has no marker; a gap is then assumed if the last sign of life is older than 90 s.
 * 4. If the clock is behind the last sign of life, a gap lasts until 90 s after it.
 * 5. The latest 50 gaps are retained. If there are more, records with an effect count as complete only after
 *    the oldest gap, which is dropped.
 */
export class RecordCoverage {
  readonly #connection: DatabaseSync;
  readonly #marker: GapMarker | undefined;
  readonly #clock: Clock;
  #stored: StoredCoverage;
  readonly #isNew: boolean;
  /** Whether there are changes to store. */
  #isChanged = false;
  #isMarked = false;

  constructor(connection: DatabaseSync, marker: GapMarker | undefined, clock: Clock) {
    this.#connection = connection;
    this.#marker = marker;
    this.#clock = clock;
    const stored = read(connection);
    this.#isNew = stored === undefined;
    this.#stored = stored ?? this.#first();
  }

  /** Records how the previous agent ended. Must be called once, before any write. The next transaction stores it. */
  start({ unwrittenSince, savedAt, mayHaveLostCommits, wasOpen, isDamaged, aliveAt }: LastEnd): void {
    const now = this.#clock.now();
    const last = Math.max(savedAt ?? 0, aliveAt ?? 0);
    // The clock may be behind the time at which the previous agent ended.
    const until = now < last ? last + LONGEST_SILENCE_MS : now;
    const addGap = (from: number, why: string) => this.addGap({ from, to: Math.max(from, until), why });
    // It is unknown which records were in the damaged rows.
    if (isDamaged) addGap(this.#stored.since, whys.damaged);
    if (unwrittenSince !== undefined) addGap(unwrittenSince, whys.unwritten);
    if (this.#isNew && wasOpen)
      this.addGap({ from: this.#stored.since, to: this.#stored.since, why: whys.lostCommits });
    if (mayHaveLostCommits && !this.#isNew) {
      addGap(savedAt ?? this.#stored.since, whys.lostCommits);
    } else if (aliveAt !== undefined && now - last > LONGEST_SILENCE_MS) {
      addGap(last, whys.silence);
    }
    this.#isMarked = unwrittenSince !== undefined;
  }

  /** Returns the current coverage, including gaps that are not stored yet. */
  get(): StoredCoverage {
    return structuredClone(this.#stored);
  }

  /**
   * Returns whether writes at or after a time (milliseconds since the epoch) failed or may have been lost. An
   * agent that was killed lost none if its disk was writable.
   */
  hasLostWrites(since: number): boolean {
    return this.#stored.gaps.some(({ to, why }) => to >= since && why !== whys.silence);
  }

  /** Adds a gap, which the next transaction or `complete` stores. Overlapping gaps with the same cause are merged. */
  addGap({ from, to, why }: StoredGap): void {
    const gap = { from: Math.min(from, to), to: Math.max(from, to), why };
    const { gaps } = this.#stored;
    const same = gaps.find((one) => one.why === why && one.from <= gap.to && one.to >= gap.from);
    if (same) Object.assign(same, { from: Math.min(same.from, gap.from), to: Math.max(same.to, gap.to) });
    else gaps.push(gap);
    gaps.sort((a, b) => a.from - b.from);
    if (gaps.length > MOST_GAPS) this.#stored.since = Math.max(this.#stored.since, gaps.shift()!.to);
    this.#isChanged = true;
  }

  /**
   * Records a deletion of records. Within a transaction, `saving` stores it.
   * @param at time of the latest deleted record, milliseconds since the epoch
   */
  trimmed(which: "since" | "requests" | "marks", at: number): void {
    const until = Math.min(Math.floor(at) + 1, Math.floor(this.#clock.now()));
    if (until <= this.#stored[which]) return;
    this.#stored[which] = until;
    this.#isChanged = true;
  }

  /** Stores changes. Must be called at the end of each transaction. */
  saving(): void {
    if (this.#isChanged) this.#save();
  }

  /** Called when the transaction of `saving` is committed. */
  saved(): void {
    this.#isChanged = false;
  }

  /** Replaces the coverage with that of imported records. */
  replace(coverage: StoredCoverage): void {
    this.#stored = structuredClone(coverage);
    this.#save();
  }

  /**
   * Called when a record could not be written.
   * @param at milliseconds since the epoch; later records are lost if the agent is killed
   */
  interrupted(at: number): void {
    if (this.#isMarked) return;
    this.#isMarked = true;
    this.#marker?.set(at);
  }

  /** Called when all records are written. Does nothing if nothing has changed. Never throws. */
  complete(): void {
    if (!this.#isMarked && !this.#isChanged) return;
    try {
      if (this.#isChanged) this.#saveAlone();
      this.#isChanged = false;
      this.#isMarked = false;
      this.#marker?.clear();
    } catch {
      // The disk is full: the marker stays set, and the gaps are stored after the next records.
      if (this.#connection.isTransaction) this.#connection.exec("ROLLBACK");
    }
  }

  #saveAlone(): void {
    this.#connection.exec("BEGIN IMMEDIATE");
    this.#save();
    this.#connection.exec("COMMIT");
  }

  #first(): StoredCoverage {
    const now = Math.floor(this.#clock.now());
    this.#isChanged = true;
    return { since: now, requests: now, marks: now, gaps: [] };
  }

  #save(): void {
    const { since, requests, marks, gaps } = this.#stored;
    this.#connection
      .prepare("INSERT OR REPLACE INTO record_coverage (one, since, requests, marks) VALUES (1, ?, ?, ?)")
      .run(since, requests, marks);
    this.#connection.exec("DELETE FROM record_gap");
    const add = this.#connection.prepare("INSERT INTO record_gap (from_at, to_at, why) VALUES (?, ?, ?)");
    for (const { from, to, why } of gaps) add.run(Math.floor(from), Math.floor(to), why);
  }
}

function read(connection: DatabaseSync): StoredCoverage | undefined {
  const row = connection.prepare("SELECT since, requests, marks FROM record_coverage").get();
  if (row === undefined) return undefined;
  const gaps = connection.prepare("SELECT from_at, to_at, why FROM record_gap ORDER BY from_at, id").all();
  return {
    since: row.since as number,
    requests: row.requests as number,
    marks: row.marks as number,
    gaps: gaps.map(({ from_at: from, to_at: to, why }) => ({
      from: from as number,
      to: to as number,
      why: why as string,
    })),
  };
}
