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
  /** Wall milliseconds: what left the node, or happened, before is deleted. */
  notBefore: number;
  /** How many pods that left the node are kept. */
  mostLeft: number;
}

// A container that crashes every few minutes for a week must not fill the database.
const MOST_EVENTS_PER_POD = 40;
const MOST_NODE_EVENTS = 500;

/** The pods that were on the node, how they ended, and what happened to them and to the node. */
export class HistoryStore {
  readonly #database: StateDatabase;
  readonly #savePod: StatementSync;
  readonly #addEvent: StatementSync;
  readonly #trimEvents: StatementSync;
  readonly #saveWatch: StatementSync;

  constructor(database: StateDatabase) {
    this.#database = database;
    const { connection } = database;
    this.#savePod = connection.prepare(
      `INSERT INTO node_pod (uid, namespace, name, seen_at, left_at, record) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (uid) DO UPDATE SET left_at = excluded.left_at, record = excluded.record`,
    );
    this.#addEvent = connection.prepare("INSERT INTO node_event (uid, at, message) VALUES (?, ?, ?)");
    this.#trimEvents = connection.prepare(
      `DELETE FROM node_event WHERE uid = ?1 AND id <=
         (SELECT id FROM node_event WHERE uid = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`,
    );
    this.#saveWatch = connection.prepare(
      `INSERT INTO node_watch (one, watched_at, cursor) VALUES (1, ?, ?)
       ON CONFLICT (one) DO UPDATE SET watched_at = excluded.watched_at, cursor = excluded.cursor`,
    );
  }

  /** Throws when the disk is full; nothing is changed then. */
  save({ pods, events, watchedAt, cursor }: HistoryChange, bounds: HistoryBounds): void {
    this.#database.transaction(() => {
      for (const { uid, namespace, name, seenAt, leftAt, record } of pods) {
        this.#savePod.run(uid, namespace, name, seenAt, leftAt, record);
      }
      for (const { uid, at, message } of events) this.#addEvent.run(uid, at, message);
      for (const uid of new Set(events.map((event) => event.uid))) {
        this.#trimEvents.run(uid, uid === "" ? MOST_NODE_EVENTS : MOST_EVENTS_PER_POD);
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
    return this.#pods("WHERE uid = ?", uid)[0];
  }

  /** The pods that had this name, the newest first. */
  podsNamed(namespace: string, name: string): StoredNodePod[] {
    return this.#pods("WHERE namespace = ? AND name = ? ORDER BY seen_at DESC, rowid DESC", namespace, name);
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
    return rows.map(identityOf);
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
    return rows.map((row) => ({ ...podOf(row), number: row.number as number }));
  }

  /** What happened to a pod, or to the node where `uid` is empty; oldest first. */
  events(uid: string): StoredNodeEvent[] {
    const rows = this.#database.connection
      .prepare("SELECT uid, at, message FROM node_event WHERE uid = ? ORDER BY at, id")
      .all(uid);
    return rows.map((row) => ({
      uid: row.uid as string,
      at: row.at as number,
      message: row.message as string,
    }));
  }

  #pods(rest: string, ...values: string[]): StoredNodePod[] {
    const rows = this.#database.connection.prepare(`SELECT * FROM node_pod ${rest}`).all(...values);
    return rows.map(podOf);
  }

  #trim({ notBefore, mostLeft }: HistoryBounds): void {
    const { connection } = this.#database;
    const old = connection.prepare("DELETE FROM node_pod WHERE left_at < ?").run(notBefore);
    const surplus = connection
      .prepare(
        `DELETE FROM node_pod WHERE left_at IS NOT NULL AND left_at <
           (SELECT left_at FROM node_pod WHERE left_at IS NOT NULL ORDER BY left_at DESC LIMIT 1 OFFSET ?)`,
      )
      .run(Math.max(mostLeft - 1, 0));
    connection.prepare("DELETE FROM node_event WHERE at < ?").run(notBefore);
    if (Number(old.changes) + Number(surplus.changes) === 0) return;
    connection.exec("DELETE FROM node_event WHERE uid <> '' AND uid NOT IN (SELECT uid FROM node_pod)");
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
