import { lastIdOf } from "./database.ts";
import type { RecordCoverage } from "./record-coverage.ts";
import { type Consequence, consequences, type RoundGroup, RoundUsage } from "./round-usage.ts";
import { Store } from "./store.ts";

/** A pod of a round: one that is evicted, or that a plugin requested to evict. */
export interface RecordedPod {
  uid: string;
  namespace: string;
  name: string;
}

/** A round to write. The bodies are bytes in the writer's format. */
export interface NewRound {
  id: number;
  /** Milliseconds since the epoch. */
  at: number;
  /** Data shared with other rounds: the ID of a base written before, or a new base. */
  base: number | Uint8Array;
  body: Uint8Array;
  pods: readonly RecordedPod[];
  consequence: Consequence;
  /** The plugins that caused the record. It is attributed to the one with the fewest bytes so far. */
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
  /** Milliseconds since the epoch. */
  at: number;
  message: string;
}

/** Selects the rounds to read. */
export interface RoundSpan {
  /** Milliseconds since the epoch, both inclusive. */
  since: number;
  until: number;
  /** Only rounds with a larger ID. */
  after: number;
  limit: number;
  /** At most one round per interval of this length in milliseconds; 0 for all rounds. */
  stepMs: number;
}

/** Records beyond these bounds are deleted. See `RoundUsage` for the order. */
export interface RecordBounds {
  /** Maximum age in milliseconds, as measured by `RecordAge`. */
  maxAgeMs: number;
  maxBytes: number;
}

// Approximate overhead of a row in bytes: keys, indexes, page overhead.
const ROW_BYTES = 100;
// A pod whose eviction is retried for days must not fill the records.
const MOST_STEPS_PER_POD = 200;
const TRIM_BATCH = 16;
const STATE_OF_BOOT = "eviction";

/** What one transaction writes. */
interface NewRecords {
  /** A JSON object with members. */
  state: string;
  /** Whether a later state was saved for this boot, which remains the newest. Default: false. */
  isReplaced?: boolean;
  round?: NewRound | undefined;
  steps: readonly StoredStep[];
}

interface NumberedState {
  text: string;
  /** Number of the save. */
  saves: number;
}

const SELECT_ROUND = "SELECT id, at, base, body FROM eviction_round";

interface DeletedRound {
  at: number;
  consequence: number;
}

/** A copy of the state of eviction. */
export interface StoredState {
  text: string;
  /** Whether it is known to be the last one saved. */
  isNewest: boolean;
}

/**
 * The state of eviction and the records of its rounds. The state has two copies: in the database, and in a file for
 * this boot, which can be written if the database cannot. A kill between the two loses nothing:
 *
 * 1. The database is written first, and the file also if that failed. Nothing is acted on before both.
 * 2. Each copy has the number of its save. Of two copies, the one with the larger number is the newer one; with equal
 *    numbers, the file.
 * 3. A database that is not proven to be the one of the previous agent is never newer than the file.
 */
export class EvictionStore extends Store {
  /** Approximate size of all records. Undefined until they are counted. */
  #usage: RoundUsage | undefined;
  #isStateKept = true;
  /** Number of the last save. Undefined until it is read. */
  #saves: number | undefined;

  /** The times for which rounds are complete. */
  get coverage(): RecordCoverage {
    return this.database.coverage;
  }

  /** Returns the stored copies of the state, newest first. */
  states(): StoredState[] {
    const ofBoot = this.#ofBoot();
    const saved = this.#saved();
    this.#saves = Math.max(this.#saves ?? 0, saved?.saves ?? 0, ofBoot?.saves ?? 0);
    if (!ofBoot) return saved ? [{ text: saved.text, isNewest: false }] : [];
    if (!saved) return [{ text: ofBoot.text, isNewest: true }];
    const isNumberedLater = saved.saves > ofBoot.saves;
    if (isNumberedLater && !this.database.isProven) this.#discardNumber();
    const isSavedLater = isNumberedLater && this.database.isProven;
    const [newest, other] = isSavedLater ? [saved, ofBoot] : [ofBoot, saved];
    return [
      { text: newest.text, isNewest: true },
      { text: other.text, isNewest: false },
    ];
  }

  #saved(): NumberedState | undefined {
    return this.database.first<NumberedState>("SELECT state AS text, saves FROM eviction_state");
  }

  #ofBoot(): NumberedState | undefined {
    return numbered(this.database.bootDirectory.read(STATE_OF_BOOT));
  }

  // Resets the number of the state in the database, which may be another agent's. The next start considers the database
  // proven, and would prefer this state because of its larger number.
  #discardNumber(): void {
    try {
      this.database.transaction(() => this.database.run("UPDATE eviction_state SET saves = 0"));
    } catch {
      // A database that can't be written is not proven at the next start either.
    }
  }

  #lastSave(): number {
    this.#saves ??= Math.max(this.#saved()?.saves ?? 0, this.#ofBoot()?.saves ?? 0);
    return this.#saves;
  }

  #nextSave(): number {
    this.#saves = this.#lastSave() + 1;
    return this.#saves;
  }

  /** Whether what is written to the database survives the agent. */
  get isPersistent(): boolean {
    return this.database.isPersistent;
  }

  /** Whether the last saved state survives the agent. */
  get isStateKept(): boolean {
    return this.#isStateKept;
  }

  /** Returns the largest ID of any round so far; 0 before the first. */
  lastRoundId(): number {
    return lastIdOf(this.database, "eviction_round");
  }

  /**
   * Writes a state, the record of a round and steps of evictions in one transaction, and trims records beyond
   * the bounds. Then saves the state for this boot, unless a later one was. Returns the ID of the round's base.
   * Throws if the disk is full; nothing is changed then, and the caller must call `saveForBoot`.
   */
  save({ state, isReplaced = false, round, steps }: NewRecords, bounds: RecordBounds): number | undefined {
    const { age } = this.database;
    try {
      const base = this.database.transaction(() => {
        const saves = isReplaced ? this.#lastSave() : this.#nextSave();
        this.database.insert("eviction_state", { one: 1, state, saves }, "REPLACE");
        age.save();
        const base = round && this.#add(round);
        for (const step of steps) this.#addStep(step);
        this.#trim(bounds, round?.id);
        return base;
      });
      if (!isReplaced) this.#isStateKept = this.#writeForBoot(state) || this.isPersistent;
      return base;
    } catch (error) {
      this.#usage = undefined;
      throw error;
    }
  }

  /** Saves a state that could not be written to the database; does not read it. See `isStateKept`. */
  saveForBoot(state: string): void {
    this.#saves = (this.#saves ?? this.#ofBoot()?.saves ?? 0) + 1;
    this.#isStateKept = this.#writeForBoot(state);
  }

  #writeForBoot(state: string): boolean {
    return this.database.bootDirectory.write(STATE_OF_BOOT, `{"saves":${this.#saves},${state.slice(1)}`);
  }

  /**
   * Returns rounds at or after `since` (milliseconds since the epoch) with an ID larger than `after`, oldest
   * first.
   */
  rounds({ since = 0, after = 0, limit = 1e9 } = {}): IterableIterator<StoredRound> {
    return this.database.each(
      `${SELECT_ROUND} WHERE at >= ? AND id > ? ORDER BY id LIMIT ?`,
      ...[since, after, limit],
    );
  }

  /**
   * Returns rounds between `since` and `until` (milliseconds since the epoch, inclusive) with an ID larger
   * than `after`, oldest first: the first of each interval of `stepMs`, or all if it is 0.
   */
  roundsBetween({ since, until, after, limit, stepMs }: RoundSpan): IterableIterator<StoredRound> {
    // The index on `at` contains the IDs, so only returned rows are read. Numbers are bound as floating-point
    // values.
    return this.database.each(
      `${SELECT_ROUND} WHERE id IN (
         SELECT id FROM (
           SELECT min(rowid) AS id FROM eviction_round WHERE at >= ?1 AND at <= ?2
           GROUP BY CASE ?3 WHEN 0 THEN rowid ELSE at / CAST(?3 AS INTEGER) END)
         WHERE id > ?4 ORDER BY id LIMIT ?5)
       ORDER BY id`,
      ...[since, until, stepMs, after, limit],
    );
  }

  /**
   * Returns the IDs of the latest `limit` rounds that concern a pod, and of the latest `limit` of them with an effect,
   * oldest first.
   */
  roundIdsOfPod(uid: string, limit = 1_000): number[] {
    const rows = this.database.all<{ round: number }>(
      `SELECT round FROM (SELECT round FROM eviction_pod WHERE uid = ?1 ORDER BY round DESC LIMIT ?2)
       UNION
       SELECT round FROM (
         SELECT round FROM eviction_pod JOIN eviction_round ON id = round WHERE uid = ?1 AND consequence = ?3
         ORDER BY round DESC LIMIT ?2)
       ORDER BY round`,
      ...[uid, limit, consequences.indexOf("effect")],
    );
    return rows.map(({ round }) => round);
  }

  /** Returns the number of rounds that concern a pod. */
  roundCountOfPod(uid: string): number {
    return this.database.first<{ count: number }>(
      "SELECT count(*) AS count FROM eviction_pod WHERE uid = ?",
      uid,
    )!.count;
  }

  /** Returns the ID of the round at a time (milliseconds since the epoch) that concerns a pod. */
  roundIdOfPodAt(uid: string, at: number): number | undefined {
    return this.database.first<{ id: number }>(
      "SELECT id FROM eviction_pod JOIN eviction_round ON id = round WHERE uid = ? AND at = ? ORDER BY id LIMIT 1",
      ...[uid, at],
    )?.id;
  }

  /** Returns the IDs of the last rounds, newest first. */
  lastRoundIds(limit: number): number[] {
    const rows = this.database.all<{ id: number }>(
      "SELECT id FROM eviction_round ORDER BY id DESC LIMIT ?",
      limit,
    );
    return rows.map(({ id }) => id);
  }

  /** Returns a round. Undefined if it is no longer stored. */
  round(id: number): StoredRound | undefined {
    return this.database.first(`${SELECT_ROUND} WHERE id = ?`, id);
  }

  /**
   * Returns the time of the oldest stored round in milliseconds since the epoch. Undefined if there is none.
   */
  oldestRoundAt(): number | undefined {
    return this.database.first<{ at: number }>("SELECT at FROM eviction_round ORDER BY id LIMIT 1")?.at;
  }

  /** Returns the data that rounds with the same base share. Undefined if it is missing. */
  base(id: number): Uint8Array | undefined {
    return this.database.first<{ body: Uint8Array }>("SELECT body FROM eviction_base WHERE id = ?", id)?.body;
  }

  hasBase(id: number): boolean {
    return this.database.first("SELECT 1 FROM eviction_base WHERE id = ?", id) !== undefined;
  }

  /** Returns all recorded pods with this name, newest first. */
  podsNamed(namespace: string, name: string): RecordedPod[] {
    return this.database
      .all<RecordedPod>(
        `SELECT uid, namespace, name, max(round) AS newest FROM eviction_pod
         WHERE namespace = ? AND name = ? GROUP BY uid ORDER BY newest DESC`,
        ...[namespace, name],
      )
      .map(({ uid }) => ({ uid, namespace, name }));
  }

  /** Returns a pod by its UID. Undefined if no round concerns it. */
  podOfUid(uid: string): RecordedPod | undefined {
    return this.database.first(
      "SELECT uid, namespace, name FROM eviction_pod WHERE uid = ? ORDER BY round DESC LIMIT 1",
      uid,
    );
  }

  /** Returns the steps of a pod's evictions, oldest first. */
  steps(uid: string): StoredStep[] {
    return this.database.all("SELECT uid, at, message FROM eviction_step WHERE uid = ? ORDER BY id", uid);
  }

  /** Returns the approximate size of the records in bytes. */
  recordBytes(): number {
    return this.#counted().total;
  }

  #counted(): RoundUsage {
    this.#usage ??= RoundUsage.count(this.database, ROW_BYTES);
    return this.#usage;
  }

  #add({ id, at, base, body, pods, consequence, plugins }: NewRound): number {
    const database = this.database;
    let baseId = base;
    if (typeof baseId !== "number") {
      this.#grow(baseId.length);
      database.insert("eviction_base", { body: baseId });
      baseId = lastIdOf(database, "eviction_base");
    }
    const bytes = body.length + ROW_BYTES * (1 + pods.length);
    const plugin = this.#counted().add(consequence, plugins, bytes);
    database.insert("eviction_round", {
      ...{ id, at, base: baseId, body, age: database.age.now() },
      ...{ consequence: consequences.indexOf(consequence), plugin, bytes },
    });
    for (const { uid, namespace, name } of pods)
      database.insert("eviction_pod", { round: id, uid, namespace, name }, "IGNORE");
    return baseId;
  }

  #addStep({ uid, at, message }: StoredStep): void {
    const database = this.database;
    database.insert("eviction_step", { uid, at, message, age: database.age.now() });
    this.#grow(message.length);
    database.run(
      `DELETE FROM eviction_step WHERE uid = ?1 AND id <=
         (SELECT id FROM eviction_step WHERE uid = ?1 ORDER BY id DESC LIMIT 1 OFFSET ${MOST_STEPS_PER_POD})`,
      uid,
    );
  }

  // Never deletes the round that is being written, so that every decision that is executed has a record.
  #trim({ maxAgeMs, maxBytes }: RecordBounds, current: number | undefined): void {
    const database = this.database;
    const oldest = database.age.now() - maxAgeMs;
    const old = database.all<DeletedRound>(
      "DELETE FROM eviction_round WHERE age < ? AND id IS NOT ? RETURNING at, consequence",
      ...[oldest, current ?? null],
    );
    const steps = database.run("DELETE FROM eviction_step WHERE age < ?", oldest);
    this.#uncover(old);
    if (old.length + steps > 0) this.#dropOrphans();
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

  #deleteOldest({ consequence, plugin }: RoundGroup, current: number | undefined): DeletedRound[] {
    return this.database.all(
      `DELETE FROM eviction_round WHERE id IN (
         SELECT id FROM eviction_round WHERE consequence = ? AND plugin = ? AND id IS NOT ? ORDER BY id LIMIT ?)
       RETURNING at, consequence`,
      ...[consequences.indexOf(consequence), plugin, current ?? null, TRIM_BATCH],
    );
  }

  // Moves the start of the coverage past deleted rounds, so that their absence does not count as evidence.
  #uncover(deleted: readonly DeletedRound[]): void {
    const newest = new Map<"since" | "requests", number>();
    for (const { at, consequence } of deleted) {
      const which = consequences[consequence] === "effect" ? "since" : "requests";
      newest.set(which, Math.max(newest.get(which) ?? 0, at));
    }
    for (const [which, at] of newest) this.coverage.trimmed(which, at);
  }

  // Deletes bases without rounds, and steps of pods without rounds.
  #dropOrphans(): void {
    this.database.connection.exec(
      `DELETE FROM eviction_base WHERE id NOT IN (SELECT base FROM eviction_round);
       DELETE FROM eviction_step WHERE uid NOT IN (SELECT uid FROM eviction_pod)`,
    );
    this.#usage = undefined;
  }

  #grow(bytes: number): void {
    this.#counted().grow(bytes + ROW_BYTES);
  }
}

function numbered(text: string | undefined): NumberedState | undefined {
  if (text === undefined) return undefined;
  return { text, saves: Number(/^\{"saves":(\d{1,15}),/.exec(text)?.[1] ?? 0) };
}
