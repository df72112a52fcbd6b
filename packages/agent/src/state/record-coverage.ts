import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "@nodekeeper/core/lib";
import type { GapMarker } from "./gap-marker.ts";

/** A span of time of which records may be missing. Wall milliseconds, both inclusive. */
export interface StoredGap {
  from: number;
  to: number;
  why: string;
}

/** Since when and where records are complete. Wall milliseconds. */
export interface StoredCoverage {
  /** Of records with an effect. */
  since: number;
  /** Of the other rounds. */
  requests: number;
  /** Of marks. */
  marks: number;
  /** Oldest first. */
  gaps: StoredGap[];
}

/** How the last agent that wrote the database ended. Wall milliseconds. */
export interface LastEnd {
  /** What `GapMarker` has; undefined if all records were written. */
  unwrittenSince: number | undefined;
  /** The last write that the database has; undefined for a new one. */
  savedAt: number | undefined;
  /** What was written after that may not be in the database. */
  mayHaveLostCommits: boolean;
  /** The last sign of life of an agent that did not stop; undefined if it stopped. */
  aliveAt: number | undefined;
}

const MOST_GAPS = 50;
// Three signs of life: an agent that runs and can write its directory is not silent for longer.
const LONGEST_SILENCE_MS = 90_000;
const whys = {
  unwritten: "the state directory could not be written, and the agent ended before it could",
  lostCommits:
    "the machine went down, or the state directory could not be written, while an agent was running",
  silence: "the agent was killed, or could not write its state directory: it left no sign of life",
} as const;

/**
 * Since when, and where, records are complete, so that the absence of a record is only taken for evidence there.
 *
 * 1. A new database is complete from its creation on; one of an earlier version from its oldest round on.
 * 2. Trimming a record moves the time forward, at most to now.
 * 3. What could not be written when the agent ended is a gap: see `GapMarker`. On a disk that became read-only there is no
 *    mark; a gap is then assumed if the last sign of life is older than 90 s.
 * 4. The newest 50 gaps are kept; before the oldest of them nothing counts as complete.
 */
export class RecordCoverage {
  readonly #connection: DatabaseSync;
  readonly #marker: GapMarker | undefined;
  readonly #clock: Clock;
  #stored: StoredCoverage;
  /** There is something to store. */
  #isChanged = false;
  #isMarked = false;

  constructor(connection: DatabaseSync, marker: GapMarker | undefined, clock: Clock) {
    this.#connection = connection;
    this.#marker = marker;
    this.#clock = clock;
    this.#stored = read(connection) ?? this.#first();
  }

  /** Notes how the agent before ended. Call it once, before anything is written. */
  start({ unwrittenSince, savedAt, mayHaveLostCommits, aliveAt }: LastEnd): void {
    const now = this.#clock.now();
    if (unwrittenSince !== undefined) this.addGap({ from: unwrittenSince, to: now, why: whys.unwritten });
    const last = Math.max(savedAt ?? 0, aliveAt ?? 0);
    if (savedAt !== undefined && mayHaveLostCommits) {
      this.addGap({ from: savedAt, to: now, why: whys.lostCommits });
    } else if (aliveAt !== undefined && now - last > LONGEST_SILENCE_MS) {
      this.addGap({ from: last, to: now, why: whys.silence });
    }
    this.#isMarked = unwrittenSince !== undefined;
    this.complete();
  }

  /** As it is now, with gaps that are not stored yet. */
  get(): StoredCoverage {
    return structuredClone(this.#stored);
  }

  /**
   * Whether writes from a time on (wall milliseconds) are known to have failed, or may have been lost. An agent that was
   * killed on a disk that it could write lost none.
   */
  hasLostWrites(since: number): boolean {
    return this.#stored.gaps.some(({ to, why }) => to >= since && why !== whys.silence);
  }

  /** Adds a gap, which `complete` stores. Overlapping ones of one cause are joined. */
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

  /** Notes records that are deleted; within their transaction it is stored. @param at wall milliseconds of the newest of them */
  trimmed(which: "since" | "requests" | "marks", at: number): void {
    const until = Math.min(Math.floor(at) + 1, Math.floor(this.#clock.now()));
    if (until <= this.#stored[which]) return;
    this.#stored[which] = until;
    if (this.#connection.isTransaction) this.#save();
    else this.#isChanged = true;
  }

  /** A transaction failed: what `trimmed` stored in it is not in the database. */
  rolledBack(): void {
    this.#isChanged = true;
  }

  /** Takes over the coverage of records that are imported. */
  replace(coverage: StoredCoverage): void {
    this.#stored = structuredClone(coverage);
    this.#save();
  }

  /** A record could not be written. @param at wall milliseconds: records since then are lost if the agent is killed */
  interrupted(at: number): void {
    if (this.#isMarked) return;
    this.#isMarked = true;
    this.#marker?.set(at);
  }

  /** All records are written. Does nothing if they were before. Never throws. */
  complete(): void {
    if (!this.#isMarked && !this.#isChanged) return;
    try {
      if (this.#isChanged) this.#saveAlone();
      this.#isChanged = false;
      this.#isMarked = false;
      this.#marker?.clear();
    } catch {
      // The disk is full: the marker stays, and the gaps are stored after the next records.
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
    const oldest = this.#connection.prepare("SELECT min(at) AS at FROM eviction_round").get()?.at;
    const since = Math.min((oldest as number | null) ?? now, now);
    const mark = this.#connection.prepare("SELECT min(at) AS at FROM mark").get()?.at;
    this.#isChanged = true;
    return { since, requests: since, marks: Math.min((mark as number | null) ?? now, now), gaps: [] };
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
