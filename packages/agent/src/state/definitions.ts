import type { DatabaseSync } from "node:sqlite";
import { NodekeeperError } from "@nodekeeper/core/lib";

/**
 * The version of the schema, in the file's `user_version`. A change of the definitions raises it, and converts files of
 * the versions before that were released. A new column with a default does not: see `addColumns`.
 */
const VERSION = 1;

const definitions = `
  CREATE TABLE reporter_content (
    plugin     TEXT PRIMARY KEY,
    content    BLOB NOT NULL,     -- GetReportContentResponse as the plugin sent it
    updated_at INTEGER NOT NULL,  -- milliseconds since the epoch
    stopped_at INTEGER,           -- when the plugin was lost; NULL while it was served
    stopped_boot TEXT,            -- boot ID when the plugin was lost; NULL while it was served or if unknown
    stopped_uptime INTEGER        -- uptime when the plugin was lost, milliseconds; NULL as above
  ) STRICT;
  CREATE TABLE stand_in (
    object  TEXT NOT NULL,        -- group/version/kind
    part    TEXT NOT NULL,        -- main, status
    plugin  TEXT NOT NULL,
    content BLOB NOT NULL,        -- published instead of what the API server refuses, as GetReportContentResponse
    PRIMARY KEY (object, part, plugin)
  ) STRICT;
  CREATE TABLE lifecycle_log (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    id   TEXT NOT NULL,
    last INTEGER NOT NULL         -- sequence number of the newest event
  ) STRICT;
  CREATE TABLE lifecycle_event (
    sequence       INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,  -- milliseconds since the epoch
    type           TEXT NOT NULL,
    pod_uid        TEXT NOT NULL,
    namespace      TEXT NOT NULL,
    name           TEXT NOT NULL,
    container_id   TEXT,              -- NULL for an event of the whole pod
    container_name TEXT,
    container_kind TEXT,              -- container, sandbox
    exit_code      INTEGER,
    reason         TEXT NOT NULL
  ) STRICT;
  CREATE TABLE lifecycle_record (
    pod_uid TEXT PRIMARY KEY,
    record  TEXT NOT NULL             -- the pod as the events so far leave it, as JSON
  ) STRICT;
  CREATE TABLE boot (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  TEXT NOT NULL,            -- of the machine's boot in which the file was last opened
    reports_outdated INTEGER NOT NULL DEFAULT 0  -- whether reports may be older than what is published
  ) STRICT;
  CREATE TABLE eviction_state (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    state TEXT NOT NULL,              -- what the last round left for the next, as JSON
    saves INTEGER NOT NULL DEFAULT 0  -- number of the save, to compare the state with its copy for the boot
  ) STRICT;
  CREATE TABLE eviction_base (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    body BLOB NOT NULL            -- the pods of a round, which later ones refer to
  ) STRICT;
  -- Criteria for trimming a record: its age by RecordAge, its consequence, and the plugin it is attributed to.
  CREATE TABLE eviction_round (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,  -- milliseconds since the epoch
    base        INTEGER NOT NULL REFERENCES eviction_base (id),
    body        BLOB NOT NULL,     -- input and decision
    age         INTEGER NOT NULL DEFAULT 0,
    consequence INTEGER NOT NULL DEFAULT 2,  -- 0 none, 1 a refusal, 2 an effect
    plugin      TEXT NOT NULL DEFAULT '',
    bytes       INTEGER NOT NULL DEFAULT 0   -- about, with its rows of eviction_pod
  ) STRICT;
  CREATE INDEX eviction_round_at ON eviction_round (at);
  CREATE INDEX eviction_round_base ON eviction_round (base);
  CREATE INDEX eviction_round_age ON eviction_round (age);
  CREATE INDEX eviction_round_group ON eviction_round (consequence, plugin, bytes);
  CREATE TABLE eviction_pod (
    round     INTEGER NOT NULL REFERENCES eviction_round (id) ON DELETE CASCADE,
    uid       TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    PRIMARY KEY (uid, round)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX eviction_pod_round ON eviction_pod (round);
  CREATE INDEX eviction_pod_name ON eviction_pod (namespace, name);
  CREATE TABLE eviction_step (
    id      INTEGER PRIMARY KEY,
    uid     TEXT NOT NULL,
    at      INTEGER NOT NULL,
    message TEXT NOT NULL,
    age     INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX eviction_step_uid ON eviction_step (uid);
  CREATE INDEX eviction_step_age ON eviction_step (age);
  CREATE TABLE node_pod (
    uid       TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    seen_at   INTEGER NOT NULL,   -- first seen, milliseconds since the epoch
    left_at   INTEGER,            -- deleted from the API server; NULL while it is there
    record    TEXT NOT NULL,      -- the pod and how it ends, as JSON
    left_age  INTEGER             -- NULL while the pod is there
  ) STRICT;
  CREATE INDEX node_pod_name ON node_pod (namespace, name);
  CREATE INDEX node_pod_left ON node_pod (left_at);
  CREATE INDEX node_pod_left_age ON node_pod (left_age);
  CREATE TABLE node_event (
    id      INTEGER PRIMARY KEY,
    uid     TEXT NOT NULL,        -- of the pod; empty for an event of the node
    at      INTEGER NOT NULL,
    message TEXT NOT NULL,
    age     INTEGER NOT NULL DEFAULT 0,
    plugin  TEXT NOT NULL DEFAULT ''
  ) STRICT;
  CREATE INDEX node_event_uid ON node_event (uid);
  CREATE INDEX node_event_at ON node_event (at);
  CREATE INDEX node_event_age ON node_event (age);
  CREATE TABLE node_watch (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    watched_at INTEGER NOT NULL,  -- when the history was last known to be complete
    cursor     TEXT               -- of the lifecycle log, read up to here; NULL where none was read
  ) STRICT;
  CREATE TABLE claim (
    driver        TEXT NOT NULL,
    uid           TEXT NOT NULL,     -- of the ResourceClaim
    namespace     TEXT NOT NULL,
    name          TEXT NOT NULL,
    state         TEXT NOT NULL,     -- preparing, prepared, unpreparing, unprepared
    boot          TEXT NOT NULL,     -- of the machine, when it was prepared
    devices       TEXT NOT NULL,     -- what was prepared, as JSON
    cdi           TEXT NOT NULL,     -- text of the CDI file; empty where there is none
    updated_at    INTEGER NOT NULL,  -- milliseconds since the epoch
    configuration TEXT NOT NULL,     -- used to prepare the devices, for the driver when they are unprepared, as JSON
    pods          TEXT NOT NULL,     -- as JSON
    details       TEXT NOT NULL DEFAULT 'null',  -- labels, annotations and requests as JSON; null if not known
    PRIMARY KEY (driver, uid)
  ) STRICT;
  -- Claims whose status may have fields of ours, from before they are written until they are removed.
  CREATE TABLE claim_status (
    driver    TEXT NOT NULL,
    uid       TEXT NOT NULL,     -- of the ResourceClaim
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    PRIMARY KEY (driver, uid)
  ) STRICT;
  -- The time between unobserved_since and the mark was not observed. NULL for a point in time.
  CREATE TABLE mark (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,   -- milliseconds since the epoch
    kind      TEXT NOT NULL,      -- agentStarted, pluginLost, ...
    title     TEXT NOT NULL,
    plugin    TEXT,
    uid       TEXT,               -- of the pod; this and the two below are NULL where it is about none
    namespace TEXT,
    name      TEXT,
    round     INTEGER,            -- of eviction
    unobserved_since INTEGER      -- milliseconds since the epoch
  ) STRICT;
  CREATE INDEX mark_kind ON mark (kind, plugin, id);
  -- A ring of minutes: the oldest are deleted. Of a signal that is deleted, readings may remain in older minutes.
  CREATE TABLE signal (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    plugin   TEXT NOT NULL,
    scope    TEXT NOT NULL,
    operator TEXT NOT NULL,     -- greaterThan, lessThan
    unit     TEXT
  ) STRICT;
  CREATE TABLE signal_minute (
    id       INTEGER PRIMARY KEY,  -- increases by one; below 1e9, which takes 1,900 years
    from_at  INTEGER NOT NULL,  -- first and last round, milliseconds since the epoch
    to_at    INTEGER NOT NULL,
    readings TEXT NOT NULL      -- [[signal, observed, threshold, met], ...], as JSON
  ) STRICT;
  CREATE TABLE record_age (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    age    INTEGER NOT NULL,  -- milliseconds for which the records have been kept, as far as it is verified
    at     INTEGER NOT NULL,  -- when it was that, milliseconds since the epoch
    boot   TEXT,              -- of the machine, then; NULL where it was not known
    uptime INTEGER            -- milliseconds
  ) STRICT;
  CREATE TABLE record_coverage (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    since    INTEGER NOT NULL,  -- records with an effect are complete since then; milliseconds since the epoch
    requests INTEGER NOT NULL,  -- the others
    marks    INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE record_gap (
    id      INTEGER PRIMARY KEY,
    from_at INTEGER NOT NULL,   -- milliseconds since the epoch
    to_at   INTEGER NOT NULL,
    why     TEXT NOT NULL
  ) STRICT;
  CREATE TABLE continuity (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    id      TEXT NOT NULL,      -- renewed at each start that can't prove that nothing is missing
    commits INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE plugin_name (
    type TEXT NOT NULL,           -- ReporterPlugin, EvictionPlugin, DRAPlugin
    name TEXT NOT NULL,
    uid  INTEGER NOT NULL,        -- of the user that the name belongs to, until the plugin's grace period ends
    PRIMARY KEY (type, name)
  ) STRICT;
  -- Records to export, in their order: see ArchiveStore. Empty unless the archive is configured.
  CREATE TABLE archive_queue (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    record TEXT NOT NULL,         -- identifies the record wherever it is exported to
    kind   TEXT NOT NULL,         -- round, pod, step, claim, mark, coverage, gap
    at     INTEGER NOT NULL,      -- milliseconds since the epoch
    key    TEXT NOT NULL,         -- of the row in the kind's table
    body   TEXT                   -- as JSON; NULL if it is read from that row
  ) STRICT;
  CREATE TABLE archive_source (
    kind TEXT PRIMARY KEY,
    last INTEGER NOT NULL         -- of the newest row that was queued: its ID, age or time
  ) STRICT;
  -- Traces of evictions whose logs were exported.
  CREATE TABLE archive_trace (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    spans BLOB NOT NULL           -- opentelemetry.proto.trace.v1.ScopeSpans without a scope
  ) STRICT;`;

/** The file has a schema that this version does not support. */
export class NewerSchemaError extends NodekeeperError {
  /** Schema version of the file. */
  readonly version: number;

  constructor(path: string, version: number) {
    super(
      "unsupported",
      `${path} was written by a newer nodekeeper (schema ${version}; this version supports up to ${VERSION})`,
    );
    this.version = version;
  }
}

/** Returns whether a file has no schema yet. Throws `unsupported` for a file of a newer agent. */
export function isNew(connection: DatabaseSync, path: string): boolean {
  const version = connection.prepare("PRAGMA user_version").get()!.user_version as number;
  if (version > VERSION) throw new NewerSchemaError(path, version);
  return version === 0;
}

/** Tables that files of older agents do not have. */
export const addedTables: readonly string[] = [
  "claim_status",
  "archive_queue",
  "archive_source",
  "archive_trace",
];

// Nullable or with a default, so that an older agent can use the file after this one.
const addedColumns = [
  { table: "claim", column: "details", definition: "TEXT NOT NULL DEFAULT 'null'" },
  { table: "reporter_content", column: "stopped_boot", definition: "TEXT" },
  { table: "reporter_content", column: "stopped_uptime", definition: "INTEGER" },
];

/** Adds the columns that a file of an older agent lacks. Missing tables are left out. */
export function addColumns(connection: DatabaseSync): void {
  for (const { table, column, definition } of addedColumns) {
    const columns = connection.prepare("SELECT name FROM pragma_table_info(?)").all(table);
    if (columns.length === 0 || columns.some(({ name }) => name === column)) continue;
    connection.exec(`ALTER TABLE ${table} ADD COLUMN ${column} ${definition}`);
  }
}

/** Creates the schema in one transaction. */
export function createSchema(connection: DatabaseSync): void {
  connection.exec("BEGIN IMMEDIATE");
  try {
    connection.exec(definitions);
    connection.exec(`PRAGMA user_version = ${VERSION}; COMMIT`);
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}
