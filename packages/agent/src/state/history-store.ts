import type { StatementSync } from "node:sqlite";
import type { StateDatabase } from "./database.ts";

/** A pod that is or was on the node. Times are wall milliseconds. */
export interface StoredNodePod {
  uid: string;
  namespace: string;
  name: string;
  /** When the agent first saw it. */
  seenAt: number;
  /** When it was deleted from the API server; null while it is there. */
  leftAt: number | null;
  /** The writer's own text. */
  record: string;
}

/** Something that happened to a pod, or to the node where `uid` is empty. */
export interface StoredNodeEvent {
  uid: string;
  /** Wall milliseconds. */
  at: number;
  message: string;
  /** Of an event of the node: the plugin that caused it, which displaces only its own. Absent for none. */
  plugin?: string;
}

/** What is written in one transaction. */
export interface HistoryChange {
  pods: readonly StoredNodePod[];
  events: readonly StoredNodeEvent[];
  /** When the history was last known to be complete, wall milliseconds. */
  watchedAt: number;
  /** How far the lifecycle log was read; null where there is none. */
  cursor: string | null;
}

/** History beyond these bounds is deleted, the oldest first. Pods that are still there are always kept. */
export interface HistoryBounds {
  /** Milliseconds by `RecordAge` since it left the node, or happened. */
  maxAgeMs: number;
  /** How many pods that left the node are kept: those without a round that had an effect are deleted first. */
  mostLeft: number;
}

// A container that crashes every few minutes for a week must not fill the database.
const MOST_EVENTS_PER_POD = 40;
const MOST_NODE_EVENTS = 500;
// The number of pods that could not be written yet: after those of all others.
const UNSAVED = Number.MAX_SAFE_INTEGER;

/** The pods that were on the node, how they ended, and what happened to them and to the node. */
export class HistoryStore {
  readonly #database: StateDatabase;
  readonly #savePod: StatementSync;
  readonly #addEvent: StatementSync;
  readonly #trimEvents: StatementSync;
  readonly #saveWatch: StatementSync;
  /** What could not be written: it is read all the same. */
  #unsaved: Pick<HistoryChange, "pods" | "events"> = { pods: [], events: [] };

  constructor(database: StateDatabase) {
    this.#database = database;
    const { connection } = database;
    this.#savePod = connection.prepare(
      `INSERT INTO node_pod (uid, namespace, name, seen_at, left_at, record, left_age) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (uid) DO UPDATE SET left_at = excluded.left_at, record = excluded.record,
         left_age = CASE WHEN excluded.left_at IS NULL THEN NULL ELSE coalesce(left_age, excluded.left_age) END`,
    );
    this.#addEvent = connection.prepare(
      "INSERT INTO node_event (uid, at, message, age, plugin) VALUES (?, ?, ?, ?, ?)",
    );
    this.#trimEvents = connection.prepare(
      `DELETE FROM node_event WHERE uid = ?1 AND id <=
         (SELECT id FROM node_event WHERE uid = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`,
    );
    this.#saveWatch = connection.prepare(
      `INSERT INTO node_watch (one, watched_at, cursor) VALUES (1, ?, ?)
       ON CONFLICT (one) DO UPDATE SET watched_at = excluded.watched_at, cursor = excluded.cursor`,
    );
  }

  /**
   * Throws when the disk is full; nothing is changed on it then. The caller then saves the same and more again: until it
   * succeeds, what was to be saved last is read from memory.
   */
  save(change: HistoryChange, bounds: HistoryBounds): void {
    this.#unsaved = change;
    this.#write(change, bounds);
    this.#unsaved = { pods: [], events: [] };
  }

  #write({ pods, events, watchedAt, cursor }: HistoryChange, bounds: HistoryBounds): void {
    const { age } = this.#database;
    this.#database.transaction(() => {
      age.save();
      const now = age.now();
      for (const { uid, namespace, name, seenAt, leftAt, record } of pods) {
        this.#savePod.run(uid, namespace, name, seenAt, leftAt, record, leftAt === null ? null : now);
      }
      for (const { uid, at, message, plugin = "" } of events)
        this.#addEvent.run(uid, at, message, now, plugin);
      for (const uid of new Set(events.map((event) => event.uid))) {
        if (uid === "") this.#trimNodeEvents();
        else this.#trimEvents.run(uid, MOST_EVENTS_PER_POD);
      }
      this.#saveWatch.run(watchedAt, cursor);
      this.#trim(bounds);
    });
  }

  /** When the history was last known to be complete, and how far the lifecycle log was read. */
  watch(): { watchedAt: number; cursor: string | null } | undefined {
    const row = this.#database.connection.prepare("SELECT watched_at, cursor FROM node_watch").get();
    return row && { watchedAt: row.watched_at as number, cursor: row.cursor as string | null };
  }

  /** Pods that were there when the history was last written. */
  present(): StoredNodePod[] {
    return this.#pods("WHERE left_at IS NULL");
  }

  /** A pod by its UID; undefined where the history has none. */
  pod(uid: string): StoredNodePod | undefined {
    return this.#unsaved.pods.find((pod) => pod.uid === uid) ?? this.#pods("WHERE uid = ?", uid)[0];
  }

  /** The pods that had this name, the newest first. */
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
   * Pods whose "namespace/name" contains a text, or whose UID it is: those that are there first, then the last deleted.
   * Without their records.
   */
  find(text: string, limit: number): Omit<StoredNodePod, "record">[] {
    const rows = this.#database.connection
      .prepare(
        `SELECT uid, namespace, name, seen_at, left_at FROM node_pod
         WHERE uid = ?1 OR instr(namespace || '/' || name, ?1) > 0
         ORDER BY left_at IS NOT NULL, left_at DESC, seen_at DESC, rowid DESC LIMIT ?2`,
      )
      .all(text, limit);
    const found = new Map(rows.map(identityOf).map((pod) => [pod.uid, pod]));
    for (const { record: _record, ...pod } of this.#unsaved.pods) {
      const isMeant = pod.uid === text || `${pod.namespace}/${pod.name}`.includes(text);
      if (found.has(pod.uid) || (isMeant && found.size < limit)) found.set(pod.uid, pod);
    }
    return [...found.values()];
  }

  /** When the oldest thing happened that is still recorded, wall milliseconds; undefined where there is none. */
  oldestAt(): number | undefined {
    const row = this.#database.connection
      .prepare(
        `SELECT min(at) AS at FROM (
           SELECT min(left_at) AS at FROM node_pod UNION ALL SELECT min(at) FROM node_event)`,
      )
      .get();
    return (row?.at as number | null) ?? undefined;
  }

  /** Pods that were on the node at or after a time (wall milliseconds), with a number above `after`, in order of it. */
  pods({ since, after, limit }: { since: number; after: number; limit: number }): (StoredNodePod & {
    number: number;
  })[] {
    const rows = this.#database.connection
      .prepare(
        `SELECT rowid AS number, * FROM node_pod
         WHERE rowid > ? AND (left_at IS NULL OR left_at >= ?) ORDER BY rowid LIMIT ?`,
      )
      .all(after, since, limit);
    const unsaved = new Map(this.#unsaved.pods.map((pod) => [pod.uid, pod]));
    const stored = rows.map((row) => {
      const pod = podOf(row);
      return { ...pod, ...unsaved.get(pod.uid), number: row.number as number };
    });
    if (rows.length === limit || after >= UNSAVED) return stored;
    const isNew = ({ uid }: StoredNodePod) => this.#pods("WHERE uid = ?", uid).length === 0;
    return [...stored, ...this.#unsaved.pods.filter(isNew).map((pod) => ({ ...pod, number: UNSAVED }))];
  }

  /** What happened to a pod, or to the node where `uid` is empty; oldest first. */
  events(uid: string): StoredNodeEvent[] {
    const rows = this.#database.connection
      .prepare("SELECT uid, at, message FROM node_event WHERE uid = ? ORDER BY at, id")
      .all(uid);
    const unsaved = this.#unsaved.events.filter((event) => event.uid === uid);
    return [
      ...rows.map((row) => ({
        uid: row.uid as string,
        at: row.at as number,
        message: row.message as string,
      })),
      ...unsaved.map(({ at, message }) => ({ uid, at, message })),
    ];
  }

  #pods(rest: string, ...values: string[]): StoredNodePod[] {
    const rows = this.#database.connection.prepare(`SELECT * FROM node_pod ${rest}`).all(...values);
    return rows.map(podOf);
  }

  // Of the plugin with the most events the oldest ones.
  #trimNodeEvents(): void {
    const { connection } = this.#database;
    const groups = connection
      .prepare(
        "SELECT plugin, count(*) AS count FROM node_event WHERE uid = '' GROUP BY plugin ORDER BY count DESC",
      )
      .all() as { plugin: string; count: number }[];
    const surplus = groups.reduce((total, { count }) => total + count, 0) - MOST_NODE_EVENTS;
    if (surplus <= 0) return;
    connection
      .prepare(
        `DELETE FROM node_event WHERE id IN (
           SELECT id FROM node_event WHERE uid = '' AND plugin = ? ORDER BY id LIMIT ?)`,
      )
      .run(groups[0]!.plugin, surplus);
  }

  #trim({ maxAgeMs, mostLeft }: HistoryBounds): void {
    const { connection, age } = this.#database;
    const oldest = age.now() - maxAgeMs;
    const old = Number(connection.prepare("DELETE FROM node_pod WHERE left_age < ?").run(oldest).changes);
    const surplus = this.#trimLeft(mostLeft);
    connection.prepare("DELETE FROM node_event WHERE age < ?").run(oldest);
    if (old + surplus === 0) return;
    connection.exec("DELETE FROM node_event WHERE uid <> '' AND uid NOT IN (SELECT uid FROM node_pod)");
  }

  // Pods that eviction did nothing about first, the oldest first.
  #trimLeft(mostLeft: number): number {
    const { connection } = this.#database;
    const left = connection
      .prepare("SELECT count(*) AS count FROM node_pod WHERE left_age IS NOT NULL")
      .get();
    const surplus = (left?.count as number) - mostLeft;
    if (surplus <= 0) return 0;
    const { changes } = connection
      .prepare(
        `DELETE FROM node_pod WHERE uid IN (
           SELECT uid FROM node_pod WHERE left_age IS NOT NULL
           ORDER BY uid IN (SELECT uid FROM eviction_pod JOIN eviction_round ON id = round WHERE consequence = 2),
             left_age, rowid LIMIT ?)`,
      )
      .run(surplus);
    return Number(changes);
  }
}

function podOf(row: Record<string, unknown>): StoredNodePod {
  return { ...identityOf(row), record: row.record as string };
}

function identityOf(row: Record<string, unknown>): Omit<StoredNodePod, "record"> {
  return {
    uid: row.uid as string,
    namespace: row.namespace as string,
    name: row.name as string,
    seenAt: row.seen_at as number,
    leftAt: row.left_at as number | null,
  };
}
