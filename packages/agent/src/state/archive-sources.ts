import type { StateDatabase } from "./database.ts";

/** Kinds of queued records. `gap`: records that were not exported. The spellings are stored in the database. */
export type ArchiveKind = "round" | "pod" | "step" | "claim" | "mark" | "coverage" | "gap";

/** The rows of a table that are exported. In the SQL expressions, `r` is the row. */
interface Source {
  kind: ArchiveKind;
  table: string;
  /** The changes that export a row, each with its condition; `OLD` is the row before an update. */
  changes: Partial<Record<"INSERT" | "UPDATE" | "DELETE", string>>;
  /** Whether the row is queued before the change. Default: after it. */
  isBefore?: true;
  /** Which rows are exported. Default: all. */
  when?: string;
  at: string;
  key: string;
  /** JSON of what is exported; null if it is read from the row when it is exported. */
  body: string | null;
  /** What distinguishes the record from others of the same kind and time. Default: the body. */
  identity?: string;
  /**
   * A number that increases from row to row. Used to find the rows that were written while no exporter was running.
   * Undefined if deleted rows are exported.
   */
  order?: string;
}

const exportedMarks = [
  "agentStarted",
  "agentStartedAfterKill",
  "agentStopped",
  "roundsPaused",
  "taintAdded",
  "taintChanged",
  "taintRemoved",
];

const mark = `json_object('id', r.id, 'at', r.at, 'kind', r.kind, 'title', r.title, 'plugin', r.plugin,
  'round', r.round, 'unobservedSince', r.unobserved_since)`;

const claim = (
  state: string,
  at: string,
) => `json_object('driver', r.driver, 'uid', r.uid, 'namespace', r.namespace, 'name', r.name,
  'state', '${state}', 'updatedAt', ${at},
  'pods', (SELECT json_group_array(json_object('uid', value ->> 'uid', 'namespace', r.namespace, 'name', value ->> 'name'))
           FROM json_each(r.pods)),
  'devices', (SELECT json_group_array((value ->> 'pool') || '/' || (value ->> 'device')) FROM json_each(r.devices)))`;

// Derived from the row, so that a row that is queued again has the same ID.
const recordIdOf = ({ kind, at, body, identity = body ?? "NULL" }: Source) =>
  `archive_id('${kind}', ${at}, ${identity})`;

// Rounds and pods are read when they are exported, because they are large.
const sources: readonly Source[] = [
  {
    ...{ kind: "round", table: "eviction_round", changes: { INSERT: "1" }, when: "r.consequence > 0" },
    ...{ at: "r.at", key: "r.id", body: null, identity: "r.id", order: "r.id" },
  },
  {
    ...{ kind: "step", table: "eviction_step", changes: { INSERT: "1" }, at: "r.at", key: "r.uid" },
    ...{ body: "json_object('uid', r.uid, 'at', r.at, 'message', r.message)", order: "r.age" },
    identity: "r.id || r.uid || r.message",
  },
  {
    ...{ kind: "pod", table: "node_pod", when: "r.left_age IS NOT NULL" },
    // Containers of a force-deleted pod exit after the deletion, which changes its record.
    changes: { INSERT: "1", UPDATE: "OLD.left_age IS NULL OR r.record IS NOT OLD.record" },
    ...{ at: "r.left_at", key: "r.uid", body: null, identity: "r.uid || r.record", order: "r.left_age" },
  },
  {
    ...{ kind: "mark", table: "mark", changes: { INSERT: "1" } },
    when: `r.kind IN (${exportedMarks.map((kind) => `'${kind}'`).join(", ")})`,
    ...{ at: "r.at", key: "r.id", body: mark, order: "r.id" },
  },
  {
    ...{ kind: "claim", table: "claim", isBefore: true, when: "r.state = 'prepared'" },
    // Each change of a claim replaces its row.
    changes: {
      INSERT: `NOT EXISTS (SELECT 1 FROM claim AS old WHERE old.driver = r.driver AND old.uid = r.uid
        AND old.state = r.state AND old.pods = r.pods AND old.devices = r.devices)`,
    },
    ...{
      at: "r.updated_at",
      key: "r.driver || '/' || r.uid",
      body: claim("prepared", "r.updated_at"),
      order: "r.updated_at",
    },
  },
  {
    ...{ kind: "claim", table: "claim", changes: { DELETE: "1" }, when: "r.state <> 'preparing'" },
    ...{ at: "archive_now()", key: "r.driver || '/' || r.uid", body: claim("unprepared", "archive_now()") },
  },
  {
    // Each change rewrites the whole table.
    ...{ kind: "coverage", table: "record_gap" },
    changes: { INSERT: "r.to_at > (SELECT last FROM archive_source WHERE kind = 'coverage')" },
    ...{ at: "r.to_at", key: "r.id", order: "r.to_at" },
    body: "json_object('from', r.from_at, 'to', r.to_at, 'why', r.why)",
  },
];

/**
 * Creates triggers that queue the exported rows of all tables in the transaction that writes them. Rows
 * written while nothing was queued, as by an agent without an archive, are queued first, if still kept.
 * Must be called in a transaction, once per connection: the triggers end with it.
 */
export function queueSources(database: StateDatabase): void {
  queueMissed(database);
  for (const source of sources)
    for (const [change, condition] of Object.entries(source.changes))
      createTrigger(database, source, change, condition);
}

function queueMissed(database: StateDatabase): void {
  const kept = sources.filter(({ order }) => order !== undefined);
  const isFirst = database.first("SELECT 1 FROM archive_source LIMIT 1") === undefined;
  for (const { kind } of kept) database.insert("archive_source", { kind, last: -1 }, "IGNORE");
  const missed = kept.map((source) => {
    const { kind, table, order, when = "1", at, key, body } = source;
    return `SELECT ${recordIdOf(source)} AS record, '${kind}' AS kind, ${at} AS at, ${key} AS key,
       ${body ?? "NULL"} AS body FROM ${table} AS r
       WHERE (${when}) AND ${order} > (SELECT last FROM archive_source WHERE kind = '${kind}')`;
  });
  database.connection.exec(
    `INSERT INTO archive_queue (record, kind, at, key, body)
     SELECT record, kind, at, key, body FROM (${missed.join(" UNION ALL ")}) ORDER BY at`,
  );
  if (isFirst) queueUnkept(database);
  for (const { kind, table, order, when = "1" } of kept)
    database.connection.exec(
      `UPDATE archive_source SET last = max(last, coalesce((SELECT max(${order}) FROM ${table} AS r WHERE ${when}), -1))
       WHERE kind = '${kind}'`,
    );
}

const UNKEPT = "when the archive was configured, the records of that time were no longer kept";

// Pods are kept longer than decisions about them. Without this gap, it would seem that none were made.
function queueUnkept(database: StateDatabase): void {
  database.connection.exec(
    `INSERT INTO archive_queue (record, kind, at, key, body)
     SELECT archive_id('coverage', since, body), 'coverage', since, '', body FROM (
       SELECT since, json_object('from', oldest, 'to', since - 1, 'why', '${UNKEPT}') AS body
       FROM record_coverage, (SELECT min(at) AS oldest FROM archive_queue WHERE kind <> 'coverage') WHERE oldest < since)`,
  );
}

function createTrigger(database: StateDatabase, source: Source, change: string, condition: string): void {
  const { kind, table, order, when = "1", isBefore, at, key, body } = source;
  const row = change === "DELETE" ? "OLD" : "NEW";
  const advance =
    order === undefined ? "" : `UPDATE archive_source SET last = max(last, ${order}) WHERE kind = '${kind}';`;
  const sql = `CREATE TEMP TRIGGER archive_${table}_${change} ${isBefore ? "BEFORE" : "AFTER"} ${change} ON main.${table}
     WHEN (${when}) AND (${condition}) BEGIN
       INSERT INTO archive_queue (record, kind, at, key, body)
       VALUES (${recordIdOf(source)}, '${kind}', ${at}, ${key}, ${body ?? "NULL"});
       ${advance}
     END`;
  database.connection.exec(sql.replace(/\br\./g, `${row}.`));
}
