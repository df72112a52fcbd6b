import type { StatementSync } from "node:sqlite";
import { type Consequence, consequences } from "./consequence.ts";
import type { StateDatabase } from "./database.ts";
import type { RecordCoverage } from "./record-coverage.ts";
import { type RoundGroup, RoundUsage } from "./round-usage.ts";

/** A pod of a round: one that is evicted, or that a plugin requested to evict. */
export interface RecordedPod {
  uid: string;
  namespace: string;
  name: string;
}

/** A round to be written. The bodies are the writer's own bytes. */
export interface NewRound {
  id: number;
  /** Wall milliseconds. */
  at: number;
  /** What it shares with other rounds: the id of a base written before, or a new one. */
  base: number | Uint8Array;
  body: Uint8Array;
  pods: readonly RecordedPod[];
  consequence: Consequence;
  /** The plugins that caused the record: it counts for the one of them with the fewest bytes so far. */
  plugins: readonly string[];
}

export interface StoredRound {
  id: number;
  at: number;
  base: number;
  body: Uint8Array;
}

/** A step of an eviction. */
export interface StoredStep {
  uid: string;
  /** Wall milliseconds. */
  at: number;
  message: string;
}

/** Which rounds to read. */
export interface RoundSpan {
  /** Wall milliseconds, both inclusive. */
  since: number;
  until: number;
  /** Only rounds with a greater id. */
  after: number;
  limit: number;
  /** At most one round is read for each of these milliseconds; 0 for all. */
  stepMs: number;
}

/** Records beyond either bound are deleted: see `RoundUsage` for the order. */
export interface RecordBounds {
  /** Milliseconds by `RecordAge`: older records are deleted. */
  maxAgeMs: number;
  maxBytes: number;
}

// What a row costs besides its bytes, about: keys, indexes, page overhead.
const ROW_BYTES = 100;
// A pod whose eviction is retried for days must not fill the records.
const MOST_STEPS_PER_POD = 200;
const TRIM_BATCH = 16;

/** The state of eviction and the records of its rounds. */
export class EvictionStore {
  readonly #database: StateDatabase;
  readonly #saveState: StatementSync;
  readonly #addBase: StatementSync;
  readonly #addRound: StatementSync;
  readonly #addPod: StatementSync;
  readonly #addStep: StatementSync;
  readonly #trimSteps: StatementSync;
  /** Bytes of all records, about; undefined before they were counted. */
  #usage: RoundUsage | undefined;

  constructor(database: StateDatabase) {
    this.#database = database;
    const { connection } = database;
    this.#saveState = connection.prepare(
      `INSERT INTO eviction_state (one, state) VALUES (1, ?)
       ON CONFLICT (one) DO UPDATE SET state = excluded.state`,
    );
    this.#addBase = connection.prepare("INSERT INTO eviction_base (body) VALUES (?)");
    this.#addRound = connection.prepare(
      `INSERT INTO eviction_round (id, at, base, body, age, consequence, plugin, bytes)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#addPod = connection.prepare(
      "INSERT OR IGNORE INTO eviction_pod (round, uid, namespace, name) VALUES (?, ?, ?, ?)",
    );
    this.#addStep = connection.prepare(
      "INSERT INTO eviction_step (uid, at, message, age) VALUES (?, ?, ?, ?)",
    );
    this.#trimSteps = connection.prepare(
      `DELETE FROM eviction_step WHERE uid = ?1 AND id <=
         (SELECT id FROM eviction_step WHERE uid = ?1 ORDER BY id DESC LIMIT 1 OFFSET ${MOST_STEPS_PER_POD})`,
    );
  }

  /** Since when and where rounds are complete. */
  get coverage(): RecordCoverage {
    return this.#database.coverage;
  }

  /** The state as it was last saved; undefined before the first. */
  state(): string | undefined {
    const row = this.#database.connection.prepare("SELECT state FROM eviction_state").get();
    return row?.state as string | undefined;
  }

  /** The greatest id of any round so far; 0 before the first. */
  lastRoundId(): number {
    const row = this.#database.connection
      .prepare("SELECT seq FROM sqlite_sequence WHERE name = 'eviction_round'")
      .get();
    return (row?.seq as number | undefined) ?? 0;
  }

  /**
   * Writes a state, a round's record and the steps of evictions, in one transaction, and keeps the records within
   * bounds. Returns the id of the round's base. Throws when the disk is full; nothing is changed then.
   */
  save(
    { state, round, steps }: { state: string; round?: NewRound | undefined; steps: readonly StoredStep[] },
    bounds: RecordBounds,
  ): number | undefined {
    const { age } = this.#database;
    try {
      return this.#database.transaction(() => {
        this.#saveState.run(state);
        age.save();
        const base = round && this.#add(round);
        for (const { uid, at, message } of steps) {
          this.#addStep.run(uid, at, message, age.now());
          this.#grow(message.length);
          this.#trimSteps.run(uid);
        }
        this.#trim(bounds, round?.id);
        return base;
      });
    } catch (error) {
      this.#usage = undefined;
      throw error;
    }
  }

  /** Rounds from `since` on (wall milliseconds), with an id greater than `after`, oldest first. */
  *rounds({ since = 0, after = 0, limit = 1e9 } = {}): IterableIterator<StoredRound> {
    const rows = this.#database.connection
      .prepare("SELECT * FROM eviction_round WHERE at >= ? AND id > ? ORDER BY id LIMIT ?")
      .iterate(since, after, limit);
    for (const row of rows) yield roundOf(row);
  }

  /**
   * Rounds from `since` until `until` (wall milliseconds, inclusive) with an id greater than `after`, oldest first: the
   * first of each `stepMs`, or all for 0.
   */
  *roundsBetween({ since, until, after, limit, stepMs }: RoundSpan): IterableIterator<StoredRound> {
    // The index of times has the ids: no row is read that is not answered. Numbers are bound as floating-point ones.
    const rows = this.#database.connection
      .prepare(
        `SELECT * FROM eviction_round WHERE id IN (
           SELECT id FROM (
             SELECT min(rowid) AS id FROM eviction_round WHERE at >= ?1 AND at <= ?2
             GROUP BY CASE ?3 WHEN 0 THEN rowid ELSE at / CAST(?3 AS INTEGER) END)
           WHERE id > ?4 ORDER BY id LIMIT ?5)
         ORDER BY id`,
      )
      .iterate(since, until, stepMs, after, limit);
    for (const row of rows) yield roundOf(row);
  }

  /** The ids of the rounds that were about a pod, oldest first: of the newest `limit`. */
  roundIdsOfPod(uid: string, limit = 1_000): number[] {
    const rows = this.#database.connection
      .prepare("SELECT round FROM eviction_pod WHERE uid = ? ORDER BY round DESC LIMIT ?")
      .all(uid, limit);
    return rows.map((row) => row.round as number).reverse();
  }

  /** One round; undefined where it is no longer kept. */
  round(id: number): StoredRound | undefined {
    const row = this.#database.connection.prepare("SELECT * FROM eviction_round WHERE id = ?").get(id);
    return row && roundOf(row);
  }

  /** When the oldest round that is still kept was, wall milliseconds; undefined where there is none. */
  oldestRoundAt(): number | undefined {
    const row = this.#database.connection.prepare("SELECT at FROM eviction_round ORDER BY id LIMIT 1").get();
    return row?.at as number | undefined;
  }

  /** The bytes that rounds of one base share; undefined where they are missing. */
  base(id: number): Uint8Array | undefined {
    const row = this.#database.connection.prepare("SELECT body FROM eviction_base WHERE id = ?").get(id);
    return row?.body as Uint8Array | undefined;
  }

  hasBase(id: number): boolean {
    return (
      this.#database.connection.prepare("SELECT 1 FROM eviction_base WHERE id = ?").get(id) !== undefined
    );
  }

  /** The pods that ever had this name, the newest first. */
  podsNamed(namespace: string, name: string): RecordedPod[] {
    const rows = this.#database.connection
      .prepare(
        `SELECT uid, namespace, name, max(round) AS newest FROM eviction_pod
         WHERE namespace = ? AND name = ? GROUP BY uid ORDER BY newest DESC`,
      )
      .all(namespace, name);
    return rows.map(podOf);
  }

  /** A pod by its UID; undefined where no round was about it. */
  podOfUid(uid: string): RecordedPod | undefined {
    const row = this.#database.connection
      .prepare("SELECT uid, namespace, name FROM eviction_pod WHERE uid = ? ORDER BY round DESC LIMIT 1")
      .get(uid);
    return row && podOf(row);
  }

  /** What happened to a pod, oldest first. */
  steps(uid: string): StoredStep[] {
    const rows = this.#database.connection
      .prepare("SELECT uid, at, message FROM eviction_step WHERE uid = ? ORDER BY id")
      .all(uid);
    return rows.map((row) => ({
      uid: row.uid as string,
      at: row.at as number,
      message: row.message as string,
    }));
  }

  /** What the records take, bytes, about. */
  recordBytes(): number {
    return this.#counted().total;
  }

  #counted(): RoundUsage {
    this.#usage ??= RoundUsage.count(this.#database.connection, ROW_BYTES);
    return this.#usage;
  }

  #add({ id, at, base, body, pods, consequence, plugins }: NewRound): number {
    let baseId = base;
    if (typeof baseId !== "number") {
      this.#grow(baseId.length);
      baseId = Number(this.#addBase.run(baseId).lastInsertRowid);
    }
    const bytes = body.length + ROW_BYTES * (1 + pods.length);
    const plugin = this.#counted().add(consequence, plugins, bytes);
    const age = this.#database.age.now();
    this.#addRound.run(id, at, baseId, body, age, consequences.indexOf(consequence), plugin, bytes);
    for (const { uid, namespace, name } of pods) this.#addPod.run(id, uid, namespace, name);
    return baseId;
  }

  // The round that is being written stays, so that the record of what is acted on is always there.
  #trim({ maxAgeMs, maxBytes }: RecordBounds, current: number | undefined): void {
    const { connection, age } = this.#database;
    const oldest = age.now() - maxAgeMs;
    const old = connection
      .prepare("DELETE FROM eviction_round WHERE age < ? AND id IS NOT ? RETURNING at, consequence")
      .all(oldest, current ?? null);
    const { changes: steps } = connection.prepare("DELETE FROM eviction_step WHERE age < ?").run(oldest);
    this.#uncover(old);
    if (old.length + Number(steps) > 0) this.#dropOrphans();
    const spent = new Set<RoundGroup>();
    while (this.recordBytes() > maxBytes) {
      const group = this.#counted().mostOverShare(maxBytes, spent);
      if (group === undefined) return;
      const deleted = this.#deleteOldest(group, current);
      this.#uncover(deleted);
      if (deleted.length === 0) spent.add(group);
      else this.#dropOrphans();
    }
  }

  #deleteOldest({ consequence, plugin }: RoundGroup, current: number | undefined): Row[] {
    return this.#database.connection
      .prepare(
        `DELETE FROM eviction_round WHERE id IN (
           SELECT id FROM eviction_round WHERE consequence = ? AND plugin = ? AND id IS NOT ? ORDER BY id LIMIT ?)
         RETURNING at, consequence`,
      )
      .all(consequences.indexOf(consequence), plugin, current ?? null, TRIM_BATCH);
  }

  // What was deleted must not be missed later.
  #uncover(deleted: readonly Row[]): void {
    const newest = new Map<"since" | "requests", number>();
    for (const { at, consequence } of deleted) {
      const which = consequences[consequence as number] === "effect" ? "since" : "requests";
      newest.set(which, Math.max(newest.get(which) ?? 0, at as number));
    }
    for (const [which, at] of newest) this.coverage.trimmed(which, at);
  }

  // Bases no round refers to, and steps of pods no round is about.
  #dropOrphans(): void {
    this.#database.connection.exec(
      `DELETE FROM eviction_base WHERE id NOT IN (SELECT base FROM eviction_round);
       DELETE FROM eviction_step WHERE uid NOT IN (SELECT uid FROM eviction_pod)`,
    );
    this.#usage = undefined;
  }

  #grow(bytes: number): void {
    this.#counted().total += bytes + ROW_BYTES;
  }
}

type Row = Record<string, unknown>;

function roundOf(row: Row): StoredRound {
  return {
    id: row.id as number,
    at: row.at as number,
    base: row.base as number,
    body: row.body as Uint8Array,
  };
}

function podOf(row: Row): RecordedPod {
  return { uid: row.uid as string, namespace: row.namespace as string, name: row.name as string };
}
