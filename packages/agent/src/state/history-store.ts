import { Store } from "./store.ts";

/** A pod that is or was on the node. Times are in milliseconds since the epoch. */
export interface StoredNodePod {
  uid: string;
  namespace: string;
  name: string;
  /** When the agent first observed it. */
  seenAt: number;
  /** When it was deleted from the API server. Null while it exists. */
  leftAt: number | null;
  /** JSON of the writer. */
  record: string;
}

/** An event of a pod, or of the node if `uid` is empty. */
export interface StoredNodeEvent {
  uid: string;
  /** Milliseconds since the epoch. */
  at: number;
  message: string;
  /**
   * For an event of the node: the plugin that caused it. If there are too many events, a plugin displaces
   * only its own. Undefined if no plugin caused it.
   */
  plugin?: string;
}

/** Changes that are written in one transaction. */
export interface HistoryChange {
  pods: readonly StoredNodePod[];
  events: readonly StoredNodeEvent[];
  /** When the history was last known to be complete, milliseconds since the epoch. */
  watchedAt: number;
  /** Position up to which the lifecycle log was read. Null if there is none. */
  cursor: string | null;
}

/** History beyond these bounds is deleted, oldest first. Pods that are on the node are never deleted. */
export interface HistoryBounds {
  /**
   * Maximum age in milliseconds, as measured by `RecordAge`, since the pod left the node or the event
   * happened.
   */
  maxAgeMs: number;
  /** Maximum number of pods that left the node. Pods without a round that had an effect are deleted first. */
  mostLeft: number;
}

// A container that crashes every few minutes for a week must not fill the database.
const MOST_EVENTS_PER_POD = 40;
const MOST_NODE_EVENTS = 500;
// Number of pods that could not be written yet. They sort after all others.
const UNSAVED = Number.MAX_SAFE_INTEGER;
const COLUMNS = "uid, namespace, name, seen_at AS seenAt, left_at AS leftAt, record";

/** The pods that were on the node, how they ended, and the events of pods and of the node. */
export class HistoryStore extends Store {
  /** Changes that could not be written. Readers see them too. */
  #unsaved: Pick<HistoryChange, "pods" | "events"> = { pods: [], events: [] };

  /**
   * Throws if the disk is full; nothing is changed on disk then. The caller must then save the same changes
   * and later ones again. Until that succeeds, they are read from memory.
   */
  save(change: HistoryChange, bounds: HistoryBounds): void {
    this.#unsaved = change;
    this.#write(change, bounds);
    this.#unsaved = { pods: [], events: [] };
  }

  #write({ pods, events, watchedAt, cursor }: HistoryChange, bounds: HistoryBounds): void {
    const database = this.database;
    database.transaction(() => {
      database.age.save();
      const now = database.age.now();
      for (const pod of pods) this.#savePod(pod, now);
      for (const { uid, at, message, plugin = "" } of events)
        database.insert("node_event", { uid, at, message, age: now, plugin });
      for (const uid of new Set(events.map((event) => event.uid))) {
        if (uid === "") this.#trimNodeEvents();
        else this.#trimEvents(uid);
      }
      database.insert("node_watch", { one: 1, watched_at: watchedAt, cursor }, "REPLACE");
      this.#trim(bounds);
    });
  }

  #savePod({ uid, namespace, name, seenAt, leftAt, record }: StoredNodePod, now: number): void {
    this.database.run(
      `INSERT INTO node_pod (uid, namespace, name, seen_at, left_at, record, left_age) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (uid) DO UPDATE SET left_at = excluded.left_at, record = excluded.record,
         left_age = CASE WHEN excluded.left_at IS NULL THEN NULL ELSE coalesce(left_age, excluded.left_age) END`,
      ...[uid, namespace, name, seenAt, leftAt, record, leftAt === null ? null : now],
    );
  }

  /**
   * Returns when the history was last known to be complete, and the position up to which the lifecycle log
   * was read.
   */
  watch(): { watchedAt: number; cursor: string | null } | undefined {
    return this.database.first("SELECT watched_at AS watchedAt, cursor FROM node_watch");
  }

  /** Returns the pods that were on the node when the history was last written. */
  present(): StoredNodePod[] {
    return this.#pods("WHERE left_at IS NULL");
  }

  /** Returns a pod by its UID. Undefined if it is not in the history. */
  pod(uid: string): StoredNodePod | undefined {
    return this.#unsaved.pods.find((pod) => pod.uid === uid) ?? this.#pods("WHERE uid = ?", uid)[0];
  }

  /** Returns the pods that had this name, newest first. */
  podsNamed(namespace: string, name: string): StoredNodePod[] {
    const stored = this.#pods(
      "WHERE namespace = ? AND name = ? ORDER BY seen_at DESC, rowid DESC",
      namespace,
      name,
    );
    const unsaved = this.#unsaved.pods.filter((pod) => pod.namespace === namespace && pod.name === name);
    const uids = new Set(unsaved.map(({ uid }) => uid));
    const known = new Set(stored.map(({ uid }) => uid));
    return [
      ...unsaved.filter(({ uid }) => !known.has(uid)).reverse(),
      ...stored.map((pod) => (uids.has(pod.uid) ? unsaved.find(({ uid }) => uid === pod.uid)! : pod)),
    ];
  }

  /**
   * Returns pods whose "namespace/name" contains a text, or whose UID equals it, without their records. Pods
   * that are on the node come first, then the others by deletion, latest first.
   */
  find(text: string, limit: number): Omit<StoredNodePod, "record">[] {
    const rows = this.database.all<Omit<StoredNodePod, "record">>(
      `SELECT uid, namespace, name, seen_at AS seenAt, left_at AS leftAt FROM node_pod
       WHERE uid = ?1 OR instr(namespace || '/' || name, ?1) > 0
       ORDER BY left_at IS NOT NULL, left_at DESC, seen_at DESC, rowid DESC LIMIT ?2`,
      ...[text, limit],
    );
    const found = new Map(rows.map((pod) => [pod.uid, pod]));
    for (const { record: _record, ...pod } of this.#unsaved.pods) {
      const isMeant = pod.uid === text || `${pod.namespace}/${pod.name}`.includes(text);
      if (found.has(pod.uid) || (isMeant && found.size < limit)) found.set(pod.uid, pod);
    }
    return [...found.values()];
  }

  /**
   * Returns the time of the oldest stored event or deletion in milliseconds since the epoch. Undefined if
   * there is none.
   */
  oldestAt(): number | undefined {
    const row = this.database.first<{ at: number | null }>(
      `SELECT min(at) AS at FROM (
         SELECT min(left_at) AS at FROM node_pod UNION ALL SELECT min(at) FROM node_event)`,
    );
    return row?.at ?? undefined;
  }

  /**
   * Returns pods that were on the node at or after `since` (milliseconds since the epoch) with a number
   * larger than `after`, sorted by number.
   */
  pods({ since, after, limit }: { since: number; after: number; limit: number }): (StoredNodePod & {
    number: number;
  })[] {
    const stored = this.database.all<StoredNodePod & { number: number }>(
      `SELECT rowid AS number, ${COLUMNS} FROM node_pod
       WHERE rowid > ? AND (left_at IS NULL OR left_at >= ?) ORDER BY rowid LIMIT ?`,
      ...[after, since, limit],
    );
    const unsaved = new Map(this.#unsaved.pods.map((pod) => [pod.uid, pod]));
    const current = stored.map((pod) => ({ ...pod, ...unsaved.get(pod.uid) }));
    if (stored.length === limit || after >= UNSAVED) return current;
    const isNew = ({ uid }: StoredNodePod) => this.#pods("WHERE uid = ?", uid).length === 0;
    return [...current, ...this.#unsaved.pods.filter(isNew).map((pod) => ({ ...pod, number: UNSAVED }))];
  }

  /** Returns the events of a pod, or of the node if `uid` is empty, oldest first. */
  events(uid: string): StoredNodeEvent[] {
    const stored = this.database.all<StoredNodeEvent>(
      "SELECT uid, at, message FROM node_event WHERE uid = ? ORDER BY at, id",
      uid,
    );
    const unsaved = this.#unsaved.events.filter((event) => event.uid === uid);
    return [...stored, ...unsaved.map(({ at, message }) => ({ uid, at, message }))];
  }

  #pods(rest: string, ...values: string[]): StoredNodePod[] {
    return this.database.all(`SELECT ${COLUMNS} FROM node_pod ${rest}`, ...values);
  }

  #trimEvents(uid: string): void {
    this.database.run(
      `DELETE FROM node_event WHERE uid = ?1 AND id <=
         (SELECT id FROM node_event WHERE uid = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`,
      ...[uid, MOST_EVENTS_PER_POD],
    );
  }

  // Deletes the oldest events of the plugin with the most events.
  #trimNodeEvents(): void {
    const groups = this.database.all<{ plugin: string; count: number }>(
      "SELECT plugin, count(*) AS count FROM node_event WHERE uid = '' GROUP BY plugin ORDER BY count DESC",
    );
    const surplus = groups.reduce((total, { count }) => total + count, 0) - MOST_NODE_EVENTS;
    if (surplus <= 0) return;
    this.database.run(
      `DELETE FROM node_event WHERE id IN (
         SELECT id FROM node_event WHERE uid = '' AND plugin = ? ORDER BY id LIMIT ?)`,
      ...[groups[0]!.plugin, surplus],
    );
  }

  #trim({ maxAgeMs, mostLeft }: HistoryBounds): void {
    const database = this.database;
    const oldest = database.age.now() - maxAgeMs;
    const old = database.run("DELETE FROM node_pod WHERE left_age < ?", oldest);
    const surplus = this.#trimLeft(mostLeft);
    database.run("DELETE FROM node_event WHERE age < ?", oldest);
    if (old + surplus === 0) return;
    database.run("DELETE FROM node_event WHERE uid <> '' AND uid NOT IN (SELECT uid FROM node_pod)");
  }

  // Deletes pods without an effect of eviction first, oldest first.
  #trimLeft(mostLeft: number): number {
    const left = this.database.first<{ count: number }>(
      "SELECT count(*) AS count FROM node_pod WHERE left_age IS NOT NULL",
    );
    const surplus = left!.count - mostLeft;
    if (surplus <= 0) return 0;
    return this.database.run(
      `DELETE FROM node_pod WHERE uid IN (
         SELECT uid FROM node_pod WHERE left_age IS NOT NULL
         ORDER BY uid IN (SELECT uid FROM eviction_pod JOIN eviction_round ON id = round WHERE consequence = 2),
           left_age, rowid LIMIT ?)`,
      surplus,
    );
  }
}
