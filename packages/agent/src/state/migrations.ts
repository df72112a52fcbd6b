import type { DatabaseSync } from "node:sqlite";
import { NodekeeperError } from "@nodekeeper/core/lib";

// Each entry migrates the schema to the next version. Released entries are never changed; new ones are
// appended.
const migrations: readonly string[] = [
  `CREATE TABLE reporter_content (
     plugin     TEXT PRIMARY KEY,
     content    BLOB NOT NULL,     -- GetReportContentResponse as the plugin sent it
     updated_at INTEGER NOT NULL,  -- milliseconds since the epoch
     stopped_at INTEGER            -- when the plugin was lost; NULL while it was served
   ) STRICT;
   CREATE TABLE published_part (
     object   TEXT NOT NULL,       -- group/version/kind
     part     TEXT NOT NULL,       -- main, status
     body     TEXT NOT NULL,       -- what was last applied, as JSON
     at       INTEGER NOT NULL,
     PRIMARY KEY (object, part)
   ) STRICT;`,
  `CREATE TABLE lifecycle_log (
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
   ) STRICT;`,
  `CREATE TABLE stand_in (
     object  TEXT NOT NULL,        -- group/version/kind
     part    TEXT NOT NULL,        -- main, status
     plugin  TEXT NOT NULL,
     content BLOB NOT NULL,        -- published instead of what the API server refuses, as GetReportContentResponse
     PRIMARY KEY (object, part, plugin)
   ) STRICT;`,
  `CREATE TABLE boot (
     one INTEGER PRIMARY KEY CHECK (one = 1),
     id  TEXT NOT NULL             -- of the machine's boot in which the file was last opened
   ) STRICT;`,
  `CREATE TABLE eviction_state (
     one   INTEGER PRIMARY KEY CHECK (one = 1),
     state TEXT NOT NULL           -- what the last round left for the next, as JSON
   ) STRICT;
   CREATE TABLE eviction_base (
     id   INTEGER PRIMARY KEY AUTOINCREMENT,
     body BLOB NOT NULL            -- the pods of a round, which later ones refer to
   ) STRICT;
   CREATE TABLE eviction_round (
     id   INTEGER PRIMARY KEY AUTOINCREMENT,
     at   INTEGER NOT NULL,        -- milliseconds since the epoch
     base INTEGER NOT NULL REFERENCES eviction_base (id),
     body BLOB NOT NULL            -- input and decision
   ) STRICT;
   CREATE INDEX eviction_round_at ON eviction_round (at);
   CREATE INDEX eviction_round_base ON eviction_round (base);
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
     message TEXT NOT NULL
   ) STRICT;
   CREATE INDEX eviction_step_uid ON eviction_step (uid);
   CREATE INDEX eviction_step_at ON eviction_step (at);`,
  // The published state is read from the API server: its managedFields cannot be lost or outdated.
  `DROP TABLE published_part;`,
  `CREATE TABLE node_pod (
     uid       TEXT PRIMARY KEY,
     namespace TEXT NOT NULL,
     name      TEXT NOT NULL,
     seen_at   INTEGER NOT NULL,   -- first seen, milliseconds since the epoch
     left_at   INTEGER,            -- deleted from the API server; NULL while it is there
     record    TEXT NOT NULL       -- the pod and how it ends, as JSON
   ) STRICT;
   CREATE INDEX node_pod_name ON node_pod (namespace, name);
   CREATE INDEX node_pod_left ON node_pod (left_at);
   CREATE TABLE node_event (
     id      INTEGER PRIMARY KEY,
     uid     TEXT NOT NULL,        -- of the pod; empty for an event of the node
     at      INTEGER NOT NULL,
     message TEXT NOT NULL
   ) STRICT;
   CREATE INDEX node_event_uid ON node_event (uid);
   CREATE INDEX node_event_at ON node_event (at);
   CREATE TABLE node_watch (
     one        INTEGER PRIMARY KEY CHECK (one = 1),
     watched_at INTEGER NOT NULL,  -- when the history was last known to be complete
     cursor     TEXT               -- of the lifecycle log, read up to here; NULL where none was read
   ) STRICT;`,
  `CREATE TABLE claim (
     driver     TEXT NOT NULL,
     uid        TEXT NOT NULL,     -- of the ResourceClaim
     namespace  TEXT NOT NULL,
     name       TEXT NOT NULL,
     state      TEXT NOT NULL,     -- preparing, prepared, unpreparing, unprepared
     boot       TEXT NOT NULL,     -- of the machine, when it was prepared
     devices    TEXT NOT NULL,     -- what was prepared, as JSON
     cdi        TEXT NOT NULL,     -- text of the CDI file; empty where there is none
     updated_at INTEGER NOT NULL,  -- milliseconds since the epoch
     PRIMARY KEY (driver, uid)
   ) STRICT;`,
  `CREATE TABLE mark (
     id        INTEGER PRIMARY KEY AUTOINCREMENT,
     at        INTEGER NOT NULL,   -- milliseconds since the epoch
     kind      TEXT NOT NULL,      -- agentStarted, pluginLost, ...
     title     TEXT NOT NULL,
     plugin    TEXT,
     uid       TEXT,               -- of the pod; this and the two below are NULL where it is about none
     namespace TEXT,
     name      TEXT,
     round     INTEGER             -- of eviction
   ) STRICT;
   CREATE INDEX mark_kind ON mark (kind, id);`,
  // Milliseconds since the epoch. The time between this and the mark was not observed. NULL for a point in
  // time.
  `ALTER TABLE mark ADD COLUMN unobserved_since INTEGER;`,
  // Criteria for trimming a record: its age by `RecordAge`, its consequence, and the plugin it is attributed
  // to. Existing rows count as new and as having an effect, so nothing is lost that an earlier version would
  // have kept.
  `ALTER TABLE eviction_round ADD COLUMN age INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE eviction_round ADD COLUMN consequence INTEGER NOT NULL DEFAULT 2;  -- 0 none, 1 a refusal, 2 an effect
   ALTER TABLE eviction_round ADD COLUMN plugin TEXT NOT NULL DEFAULT '';
   ALTER TABLE eviction_round ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;        -- about, with its rows of eviction_pod
   UPDATE eviction_round SET bytes = length(body) + 100 *
     (1 + (SELECT count(*) FROM eviction_pod WHERE eviction_pod.round = eviction_round.id));
   CREATE INDEX eviction_round_age ON eviction_round (age);
   CREATE INDEX eviction_round_group ON eviction_round (consequence, plugin, bytes);
   ALTER TABLE eviction_step ADD COLUMN age INTEGER NOT NULL DEFAULT 0;
   DROP INDEX eviction_step_at;
   CREATE INDEX eviction_step_age ON eviction_step (age);
   ALTER TABLE node_pod ADD COLUMN left_age INTEGER;  -- NULL while the pod is there
   UPDATE node_pod SET left_age = 0 WHERE left_at IS NOT NULL;
   CREATE INDEX node_pod_left_age ON node_pod (left_age);
   ALTER TABLE node_event ADD COLUMN age INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE node_event ADD COLUMN plugin TEXT NOT NULL DEFAULT '';
   CREATE INDEX node_event_age ON node_event (age);
   DROP INDEX mark_kind;
   CREATE INDEX mark_kind ON mark (kind, plugin, id);
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
   ) STRICT;`,
  // The configuration used to prepare a claim, so that the driver receives the same when the claim is
  // unprepared.
  `ALTER TABLE claim ADD COLUMN configuration TEXT NOT NULL DEFAULT '[]';  -- of the devices, as JSON
   ALTER TABLE claim ADD COLUMN pods TEXT NOT NULL DEFAULT '';  -- as JSON; empty for a record from before`,
  `CREATE TABLE continuity (
     one     INTEGER PRIMARY KEY CHECK (one = 1),
     id      TEXT NOT NULL,      -- renewed at each start that can't prove that nothing is missing
     commits INTEGER NOT NULL
   ) STRICT;`,
  `CREATE TABLE plugin_name (
     type TEXT NOT NULL,           -- ReporterPlugin, EvictionPlugin, DRAPlugin
     name TEXT NOT NULL,
     uid  INTEGER NOT NULL,        -- of the user that the name belongs to, until the plugin's grace period ends
     PRIMARY KEY (type, name)
   ) STRICT;`,
  // Number of the save, to compare the state with its copy for the boot.
  `ALTER TABLE eviction_state ADD COLUMN saves INTEGER NOT NULL DEFAULT 0;`,
];

/** The file has a schema that this version does not support. */
export class NewerSchemaError extends NodekeeperError {
  /** Schema version of the file. */
  readonly version: number;

  constructor(path: string, version: number, known: number) {
    super(
      "unsupported",
      `${path} was written by a newer nodekeeper (schema ${version}; this version supports up to ${known})`,
    );
    this.version = version;
  }
}

/** The schema version that this agent writes. */
export const latestVersion = migrations.length;

/**
 * Returns the schema version of a file; 0 for a new one. Throws `unsupported` for a file of a newer agent.
 */
export function versionOf(connection: DatabaseSync, path: string): number {
  const { user_version: version } = connection.prepare("PRAGMA user_version").get() as {
    user_version: number;
  };
  if (version > latestVersion) throw new NewerSchemaError(path, version, latestVersion);
  return version;
}

/** Migrates the schema from one version to another in one transaction. Default: to the latest. */
export function migrate(connection: DatabaseSync, from: number, to = latestVersion): void {
  if (from === to) return;
  connection.exec("BEGIN IMMEDIATE");
  try {
    for (const migration of migrations.slice(from, to)) connection.exec(migration);
    connection.exec(`PRAGMA user_version = ${to}`);
    connection.exec("COMMIT");
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}
