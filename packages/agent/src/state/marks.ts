import type { StatementSync } from "node:sqlite";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { StateDatabase } from "./database.ts";
import type { StoredGap } from "./record-coverage.ts";

/** What a mark is for. The spellings are stored. */
export const markKinds = [
  "agentStarted",
  "agentStartedAfterKill",
  "agentStopped",
  "roundsPaused",
  "pluginRegistered",
  "pluginLost",
  "pluginRefused",
  "conditionSet",
  "conditionCleared",
  "taintAdded",
  "taintChanged",
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
  /** Wall milliseconds, before `at`: the agent did not observe the node from here to the mark. */
  unobservedSince?: number;
}

/** A mark as it is stored. */
export interface Mark extends NewMark {
  /** Increases from mark to mark, also across restarts. */
  id: number;
  at: number;
}

export interface MarkSelection {
  /** Wall milliseconds, inclusive. A mark is selected too where the time before it that was not observed is within. */
  since: number;
  until: number;
  /** Only marks with a greater id. */
  after: number;
  limit: number;
}

/** A page of marks, oldest first. */
export interface MarkPage {
  items: Mark[];
  /** Wall milliseconds: since then marks are complete, besides the gaps. */
  oldest: number;
  gaps: StoredGap[];
  /** The id after which to continue; absent at the end. */
  next?: number;
}

// Of each kind, so that a plugin that registers again and again does not displace evictions; among them the plugin with the
// most loses its oldest. About 3 MB in all.
const MOST_PER_KIND = 1_000;
// Bounds memory while the disk is full.
const MOST_WAITING = 200;
const LONGEST_TITLE = 500;

/**
 * What happened on the node at points of time, in order: starts of the agent, registrations of plugins, decisions of
 * eviction. Of each kind 1,000 marks are kept, across restarts of the agent: of more, the oldest of the plugin that has
 * most is deleted. A mark is stored when `add` returns. While the database can't be written, 200 wait in memory, and are
 * read there.
 */
export class Marks {
  readonly #database: StateDatabase;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #insert: StatementSync;
  #waiting: Mark[] = [];
  // Of the agent before this one: what is written from now on is of this one.
  readonly #lastSignOfLife: number | undefined;
  #lastId: number;
  #isFailing = false;

  constructor(database: StateDatabase, clock: Clock, log: Logger) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
    const { connection } = database;
    this.#insert = connection.prepare(
      `INSERT INTO mark (id, at, kind, title, plugin, uid, namespace, name, round, unobserved_since)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#lastId = lastIdOf(database);
    this.#lastSignOfLife = newest(database.aliveBefore, lastRecorded(database));
  }

  /** The id of the newest mark; 0 where there is none. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Adds marks in one transaction, in their order. Never throws. */
  add(marks: readonly NewMark[]): void {
    if (marks.length === 0) return;
    const now = this.#clock.now();
    for (const mark of marks) {
      const title = mark.title.slice(0, LONGEST_TITLE);
      this.#waiting.push({ ...mark, id: ++this.#lastId, at: mark.at ?? now, title });
    }
    try {
      this.#database.transaction(() => this.#write());
      this.#waiting = [];
      this.#isFailing = false;
    } catch (error) {
      while (this.#waiting.length > MOST_WAITING) this.#dropWaiting();
      if (!this.#isFailing)
        this.#log.warn({ errorId: "NK1105", err: error }, "marks of the timeline can't be recorded");
      this.#isFailing = true;
    }
  }

  /**
   * Marks the agent's start, and since when no agent ran, as far as the state directory shows it. Its kind depends on
   * whether the agent before was stopped or killed.
   */
  addStart(version: string): void {
    const wasStopped = this.#wasStopped();
    const [at, since] = [this.#clock.now(), this.#lastSignOfLife];
    const mark: NewMark = wasStopped
      ? { kind: "agentStarted", title: `agent ${version} started` }
      : {
          kind: "agentStartedAfterKill",
          title: `agent ${version} started; the one before was killed, crashed, or went down with the machine`,
        };
    // Where the clock was set back, it is not known for how long.
    this.add([{ ...mark, at, ...(since !== undefined && since < at ? { unobservedSince: since } : {}) }]);
  }

  /** Marks the agent's stop. */
  addStop(version: string): void {
    this.add([{ kind: "agentStopped", title: `agent ${version} stopped` }]);
  }

  /** A page of marks, in the order in which they were added. */
  page({ since, until, after, limit }: MarkSelection): MarkPage {
    const rows = this.#database.connection
      .prepare(
        `SELECT * FROM mark WHERE id > ? AND at >= ? AND coalesce(unobserved_since, at) <= ?
         ORDER BY id LIMIT ?`,
      )
      .all(after, since, until, limit + 1);
    const waiting = this.#waiting.filter(
      (mark) => mark.id > after && mark.at >= since && (mark.unobservedSince ?? mark.at) <= until,
    );
    const found = [...rows.map(markOf), ...waiting];
    const items = found.slice(0, limit);
    const { marks: oldest, gaps } = this.#database.coverage.get();
    const page = { items, oldest, gaps };
    return found.length > limit ? { ...page, next: items.at(-1)!.id } : page;
  }

  #write(): void {
    for (const { id, at, kind, title, plugin, pod, round, unobservedSince } of this.#waiting) {
      const { uid = null, namespace = null, name = null } = pod ?? {};
      this.#insert.run(
        ...[id, at, kind, title, plugin ?? null],
        ...[uid, namespace, name, round ?? null, unobservedSince ?? null],
      );
    }
    for (const kind of new Set(this.#waiting.map((mark) => mark.kind))) this.#trim(kind);
  }

  #trim(kind: MarkKind): void {
    const { connection } = this.#database;
    for (;;) {
      const groups = connection
        .prepare(
          `SELECT plugin, count(*) AS count FROM mark WHERE kind = ? GROUP BY plugin ORDER BY count DESC, min(id)`,
        )
        .all(kind) as { plugin: string | null; count: number }[];
      const surplus = groups.reduce((all, { count }) => all + count, 0) - MOST_PER_KIND;
      const [most, next = { count: 0 }] = groups;
      if (surplus <= 0 || most === undefined) return;
      const deleted = connection
        .prepare(
          `DELETE FROM mark WHERE id IN (
             SELECT id FROM mark WHERE kind = ? AND plugin IS ? ORDER BY id LIMIT ?) RETURNING at`,
        )
        .all(kind, most.plugin, Math.min(surplus, Math.max(most.count - next.count, 1)));
      for (const { at } of deleted) this.#database.coverage.trimmed("marks", at as number);
    }
  }

  // The oldest one of the kind and plugin that has most.
  #dropWaiting(): void {
    const counts = new Map<string, number>();
    const keyOf = ({ kind, plugin = "" }: Mark) => `${kind} ${plugin}`;
    for (const mark of this.#waiting) counts.set(keyOf(mark), (counts.get(keyOf(mark)) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const [dropped] = this.#waiting.splice(
      this.#waiting.findIndex((mark) => counts.get(keyOf(mark)) === most),
      1,
    );
    this.#database.coverage.trimmed("marks", dropped!.at);
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

function newest(...times: (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
}

// The newest time that the agent before recorded: a node on which nothing happens records nothing.
function lastRecorded({ connection }: StateDatabase): number | undefined {
  const row = connection
    .prepare(
      `SELECT max(at) AS at FROM (
         SELECT at FROM (SELECT at FROM mark ORDER BY id DESC LIMIT 1)
         UNION ALL SELECT at FROM (SELECT at FROM lifecycle_event ORDER BY sequence DESC LIMIT 1)
         UNION ALL SELECT max(at) FROM eviction_round
         UNION ALL SELECT max(at) FROM node_event
         UNION ALL SELECT watched_at FROM node_watch
         UNION ALL SELECT max(updated_at) FROM reporter_content
         UNION ALL SELECT max(updated_at) FROM claim
         UNION ALL SELECT json_extract(state, '$.at') FROM eviction_state WHERE json_valid(state))
       WHERE typeof(at) IN ('integer', 'real')`,
    )
    .get();
  const at = row?.at as number | null | undefined;
  return at == null ? undefined : Math.floor(at);
}

function markOf(row: Record<string, unknown>): Mark {
  const { uid, namespace, name, plugin, round, unobserved_since: since } = row;
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
    ...(since === null ? {} : { unobservedSince: since as number }),
  };
}
