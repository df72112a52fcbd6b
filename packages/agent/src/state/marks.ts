import type { MarkKind } from "@nodekeeper/api/http";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import { lastIdOf, type StateDatabase } from "./database.ts";
import { Backlog, WriteBehind } from "./write-behind.ts";

/** An event at a point in time for a timeline, as stored. */
export type Mark = MarkPage["items"][number];

/** A mark to add. Its title is truncated to 500 characters. */
export interface NewMark extends Omit<Mark, "id" | "at"> {
  /** Milliseconds since the epoch. Default: now. */
  at?: number;
}

export interface MarkSelection {
  /**
   * Milliseconds since the epoch, inclusive. A mark is also selected if the unobserved time before it
   * overlaps the range.
   */
  since: number;
  until: number;
  /** Only marks with a larger ID. */
  after: number;
  limit: number;
}

/** A page of marks, oldest first. */
export type MarkPage = ApiAnswers["marks"];

// Per kind, so that a plugin that registers repeatedly does not displace evictions. Within a kind, the oldest
// mark of the plugin with the most marks is deleted. About 3 MB in total.
const MOST_PER_KIND = 1_000;
// Bounds memory while the disk is full.
const MOST_WAITING = 200;
const LONGEST_TITLE = 500;

/**
 * Events of the node at points in time, in order: starts of the agent, registrations of plugins, decisions of
 * eviction.
 *
 * 1. 1,000 marks of each kind are retained across restarts of the agent. If there are more, the oldest mark
 *    of the plugin with the most marks is deleted.
 * 2. A mark is stored when `add` returns. While the database is not writable, 200 marks are kept in memory
 *    and read from there.
 */
export class Marks {
  readonly #database: StateDatabase;
  readonly #clock: Clock;
  readonly #writes: WriteBehind;
  readonly #waiting = new Backlog<Mark>(MOST_WAITING, ({ kind, plugin = "" }) => ({
    groups: [`${kind} ${plugin}`],
  }));
  // Of the previous agent: determined before this agent writes anything.
  readonly #lastSignOfLife: number | undefined;
  #lastId: number;

  constructor(database: StateDatabase, clock: Clock, log: Logger) {
    this.#database = database;
    this.#clock = clock;
    this.#writes = new WriteBehind({
      what: "marks of the timeline",
      write: () => this.#write(),
      onFailure: () => this.#bound(),
      clock,
      log,
    });
    this.#lastId = lastIdOf(database, "mark");
    this.#lastSignOfLife = newest(database.aliveBefore, lastRecorded(database));
  }

  /** ID of the latest mark; 0 if there is none. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Adds marks in one transaction, in order. Never throws. */
  add(marks: readonly NewMark[]): void {
    if (marks.length === 0) return;
    const now = this.#clock.now();
    for (const mark of marks) {
      const title = mark.title.slice(0, LONGEST_TITLE);
      this.#waiting.add({ ...mark, id: ++this.#lastId, at: mark.at ?? now, title });
    }
    this.#writes.flush();
  }

  /** Adds a mark unless the last one of its kind about its pod has the same title. Never throws. */
  addMissing(mark: NewMark): void {
    if (this.#lastTitle(mark) !== mark.title.slice(0, LONGEST_TITLE)) this.add([mark]);
  }

  /**
   * Marks the start of the agent, and since when no agent was running according to the state directory. The
   * kind of the mark depends on whether the previous agent was stopped or killed.
   */
  addStart(version: string): void {
    const wasStopped = this.#wasStopped();
    const [at, since] = [this.#clock.now(), this.#lastSignOfLife];
    const mark: NewMark = wasStopped
      ? { kind: "agentStarted", title: `agent ${version} started` }
      : {
          kind: "agentStartedAfterKill",
          title: `agent ${version} started; the previous one was killed, crashed, or stopped with the machine`,
        };
    // If the clock was set back, the duration is unknown.
    this.add([{ ...mark, at, ...(since !== undefined && since < at ? { unobservedSince: since } : {}) }]);
  }

  /** Marks the stop of the agent. Must be the last mark. */
  addStop(version: string): void {
    this.add([{ kind: "agentStopped", title: `agent ${version} stopped` }]);
    this.#writes.close();
  }

  /** Returns a page of marks, in the order in which they were added. */
  page({ since, until, after, limit }: MarkSelection): MarkPage {
    const rows = this.#database.all<MarkRow>(
      `SELECT * FROM mark WHERE id > ? AND at >= ? AND coalesce(unobserved_since, at) <= ?
       ORDER BY id LIMIT ?`,
      ...[after, since, until, limit + 1],
    );
    const waiting = this.#waiting.items.filter(
      (mark) => mark.id > after && mark.at >= since && (mark.unobservedSince ?? mark.at) <= until,
    );
    const found = [...rows.map(markOf), ...waiting];
    const items = found.slice(0, limit);
    const { marks: oldest, gaps } = this.#database.coverage.get();
    const page = { items, oldest, gaps };
    return found.length > limit ? { ...page, next: items.at(-1)!.id } : page;
  }

  // Undefined also if it can't be read.
  #lastTitle({ kind, pod }: NewMark): string | undefined {
    try {
      return this.#database.first<{ title: string }>(
        "SELECT title FROM mark WHERE kind = ? AND uid = ? ORDER BY id DESC LIMIT 1",
        ...[kind, pod?.uid ?? ""],
      )?.title;
    } catch {
      return undefined;
    }
  }

  #write(): void {
    const { items } = this.#waiting;
    this.#database.transaction(() => {
      for (const { id, at, kind, title, plugin, pod, round, unobservedSince } of items)
        this.#database.insert("mark", {
          ...{ id, at, kind, title, plugin, uid: pod?.uid, namespace: pod?.namespace, name: pod?.name },
          ...{ round, unobserved_since: unobservedSince },
        });
      for (const kind of new Set(items.map((mark) => mark.kind))) this.#trim(kind);
    });
    this.#waiting.clear();
  }

  // Deletes the oldest marks of the plugins with the most marks.
  #trim(kind: MarkKind): void {
    const database = this.#database;
    const all = database.first<{ count: number }>("SELECT count(*) AS count FROM mark WHERE kind = ?", kind);
    const surplus = all!.count - MOST_PER_KIND;
    if (surplus <= 0) return;
    const deleted = database.all<{ at: number }>(
      `DELETE FROM mark WHERE id IN (
         SELECT id FROM (
           SELECT id, row_number() OVER (PARTITION BY plugin ORDER BY id DESC) AS place FROM mark WHERE kind = ?)
         ORDER BY place DESC, id LIMIT ?) RETURNING at`,
      ...[kind, surplus],
    );
    for (const { at } of deleted) database.coverage.trimmed("marks", at);
  }

  #bound(): void {
    for (const { at } of this.#waiting.bound()) this.#database.coverage.trimmed("marks", at);
  }

  // Also true before the first start.
  #wasStopped(): boolean {
    const row = this.#database.first<{ kind: MarkKind }>(
      `SELECT kind FROM mark WHERE kind IN ('agentStarted', 'agentStartedAfterKill', 'agentStopped')
       ORDER BY id DESC LIMIT 1`,
    );
    return row === undefined || row.kind === "agentStopped";
  }
}

function newest(...times: (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length > 0 ? Math.max(...known) : undefined;
}

// Returns the latest time recorded by the previous agent. A node on which nothing happens records nothing.
function lastRecorded(database: StateDatabase): number | undefined {
  const row = database.first<{ at: number | null }>(
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
  );
  return row?.at == null ? undefined : Math.floor(row.at);
}

interface MarkRow {
  id: number;
  at: number;
  kind: MarkKind;
  title: string;
  plugin: string | null;
  uid: string | null;
  namespace: string;
  name: string;
  round: number | null;
  unobserved_since: number | null;
}

function markOf({ id, at, kind, title, plugin, uid, namespace, name, round, ...rest }: MarkRow): Mark {
  const since = rest.unobserved_since;
  return {
    ...{ id, at, kind, title },
    ...(plugin === null ? {} : { plugin }),
    ...(uid === null ? {} : { pod: { uid, namespace, name } }),
    ...(round === null ? {} : { round }),
    ...(since === null ? {} : { unobservedSince: since }),
  };
}
