import type { StatementSync } from "node:sqlite";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { StateDatabase } from "./database.ts";

/** What a mark is for. The spellings are stored. */
export const markKinds = [
  "agentStarted",
  "agentStartedAfterKill",
  "agentStopped",
  "pluginRegistered",
  "pluginLost",
  "pluginRefused",
  "conditionSet",
  "conditionCleared",
  "taintAdded",
  "taintRemoved",
  "evictionSelected",
  "evictionDryRun",
  "evictionWithdrawn",
  "evictionEnded",
  "evictionRefused",
] as const;
export type MarkKind = (typeof markKinds)[number];

/** Something that happened at a point of time, for a timeline. */
export interface NewMark {
  kind: MarkKind;
  /** One line for an operator, at most 500 characters of which are kept. */
  title: string;
  /** Wall milliseconds. Default: now. */
  at?: number;
  plugin?: string;
  pod?: { uid: string; namespace: string; name: string };
  /** The id of the round of eviction that decided it. */
  round?: number;
}

/** A mark as it is stored. */
export interface Mark extends NewMark {
  /** Increases from mark to mark, also across restarts. */
  id: number;
  at: number;
}

export interface MarkSelection {
  /** Wall milliseconds, inclusive. */
  since: number;
  until: number;
  /** Only marks with a greater id. */
  after: number;
  limit: number;
}

// Of each kind, so that a plugin that registers again and again does not displace evictions. About 3 MB in all.
const MOST_PER_KIND = 1_000;
// Bounds memory while the disk is full.
const MOST_WAITING = 200;
const LONGEST_TITLE = 500;

/**
 * What happened on the node at points of time, in order: starts of the agent, registrations of plugins, decisions of
 * eviction. The newest 1,000 marks of each kind are kept, across restarts of the agent; a mark is stored when `add`
 * returns. While the database can't be written, the newest 200 wait in memory.
 */
export class Marks {
  readonly #database: StateDatabase;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #insert: StatementSync;
  readonly #trim: StatementSync;
  #waiting: (NewMark & { at: number })[] = [];
  #lastId: number;
  #isFailing = false;

  constructor(database: StateDatabase, clock: Clock, log: Logger) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
    const { connection } = database;
    this.#insert = connection.prepare(
      "INSERT INTO mark (at, kind, title, plugin, uid, namespace, name, round) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.#trim = connection.prepare(
      `DELETE FROM mark WHERE kind = ?1 AND id <=
         (SELECT id FROM mark WHERE kind = ?1 ORDER BY id DESC LIMIT 1 OFFSET ${MOST_PER_KIND})`,
    );
    this.#lastId = lastIdOf(database);
  }

  /** The id of the newest mark; 0 where there is none. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Adds marks in one transaction, in their order. Never throws. */
  add(marks: readonly NewMark[]): void {
    if (marks.length === 0) return;
    const now = this.#clock.now();
    this.#waiting.push(
      ...marks.map((mark) => ({ ...mark, at: mark.at ?? now, title: mark.title.slice(0, LONGEST_TITLE) })),
    );
    try {
      this.#lastId = this.#database.transaction(() => this.#write());
      this.#waiting = [];
      this.#isFailing = false;
    } catch (error) {
      this.#waiting = this.#waiting.slice(-MOST_WAITING);
      if (!this.#isFailing)
        this.#log.warn({ errorId: "NK1105", err: error }, "marks of the timeline can't be recorded");
      this.#isFailing = true;
    }
  }

  /** Marks the agent's start. Its kind depends on whether the agent before was stopped or killed. */
  addStart(version: string): void {
    const wasStopped = this.#wasStopped();
    this.add([
      wasStopped
        ? { kind: "agentStarted", title: `agent ${version} started` }
        : {
            kind: "agentStartedAfterKill",
            title: `agent ${version} started; the one before was killed, crashed, or went down with the machine`,
          },
    ]);
  }

  /** Marks the agent's stop. */
  addStop(version: string): void {
    this.add([{ kind: "agentStopped", title: `agent ${version} stopped` }]);
  }

  /** A page of marks, in the order in which they were added. */
  page({ since, until, after, limit }: MarkSelection): { items: Mark[]; next?: number } {
    const rows = this.#database.connection
      .prepare("SELECT * FROM mark WHERE id > ? AND at >= ? AND at <= ? ORDER BY id LIMIT ?")
      .all(after, since, until, limit + 1);
    const items = rows.slice(0, limit).map(markOf);
    return rows.length > limit ? { items, next: items.at(-1)!.id } : { items };
  }

  #write(): number {
    let id = this.#lastId;
    for (const { at, kind, title, plugin, pod, round } of this.#waiting) {
      const { uid = null, namespace = null, name = null } = pod ?? {};
      const { lastInsertRowid } = this.#insert.run(
        ...[at, kind, title, plugin ?? null],
        ...[uid, namespace, name, round ?? null],
      );
      id = Number(lastInsertRowid);
    }
    for (const kind of new Set(this.#waiting.map((mark) => mark.kind))) this.#trim.run(kind);
    return id;
  }

  // True before the first start.
  #wasStopped(): boolean {
    const row = this.#database.connection
      .prepare(
        `SELECT kind FROM mark WHERE kind IN ('agentStarted', 'agentStartedAfterKill', 'agentStopped')
         ORDER BY id DESC LIMIT 1`,
      )
      .get();
    return row === undefined || row.kind === "agentStopped";
  }
}

function lastIdOf({ connection }: StateDatabase): number {
  const row = connection.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'mark'").get();
  return (row?.seq as number | undefined) ?? 0;
}

function markOf(row: Record<string, unknown>): Mark {
  const { uid, namespace, name, plugin, round } = row;
  return {
    id: row.id as number,
    at: row.at as number,
    kind: row.kind as MarkKind,
    title: row.title as string,
    ...(plugin === null ? {} : { plugin: plugin as string }),
    ...(uid === null
      ? {}
      : { pod: { uid: uid as string, namespace: namespace as string, name: name as string } }),
    ...(round === null ? {} : { round: round as number }),
  };
}
