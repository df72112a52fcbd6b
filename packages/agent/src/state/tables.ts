import type { ContinuedStore } from "./continuity.ts";

/** Facts about a table other than its columns. */
export interface TableFacts {
  /** Content of the table, for messages. */
  holds: string;
  /** The store whose consumers must not rely on it if rows are missing. */
  store?: ContinuedStore;
  /** Whether a missing row is a gap in `RecordCoverage`. */
  isRecord?: true;
  /** SQL condition of the rows that their readers can decode. Integers are checked in all tables. */
  readable?: string;
}

/** Facts by table. A new table must be added here. */
export const tables: Readonly<Record<string, TableFacts>> = {
  reporter_content: { holds: "the last reports of plugins" },
  stand_in: { holds: "the last known good reports of plugins in quarantine" },
  lifecycle_log: { holds: "the position of the event log", store: "lifecycle" },
  lifecycle_event: { holds: "events of pods and containers", store: "lifecycle" },
  lifecycle_record: { holds: "pods and containers as the events leave them", store: "lifecycle" },
  boot: { holds: "the machine's boot" },
  eviction_state: {
    holds: "limits, cooldowns, grace periods and evictions in progress",
    isRecord: true,
    readable: "json_valid(state)",
  },
  eviction_base: { holds: "the pods of recorded rounds", isRecord: true },
  eviction_round: {
    holds: "recorded rounds of eviction",
    isRecord: true,
    readable: "consequence BETWEEN 0 AND 2",
  },
  eviction_pod: { holds: "which rounds are about which pods", isRecord: true },
  eviction_step: { holds: "steps of evictions", isRecord: true },
  node_pod: { holds: "the history of pods", isRecord: true },
  node_event: { holds: "what happened to pods and the node", isRecord: true },
  node_watch: { holds: "how far the history of pods was observed" },
  claim: {
    holds: "prepared claims",
    readable: `json_valid(devices) AND json_valid(configuration) AND json_valid(pods) AND json_valid(details)
               AND state IN ('preparing', 'prepared', 'unpreparing', 'unprepared')`,
  },
  claim_status: { holds: "claims whose status may have fields of the agent" },
  mark: { holds: "marks of the timeline", isRecord: true },
  signal: { holds: "the names of signals" },
  signal_minute: { holds: "the history of signals", readable: "json_valid(readings) AND id < 1e9" },
  record_age: { holds: "the age of records" },
  record_coverage: { holds: "since when records are complete", isRecord: true },
  record_gap: { holds: "gaps in the records", isRecord: true },
  continuity: { holds: "the number of commits" },
  archive_queue: { holds: "records to export", readable: "body IS NULL OR json_valid(body)" },
  archive_source: { holds: "which records were queued for export" },
  archive_trace: { holds: "traces to export" },
  plugin_name: { holds: "the users that names of plugins belong to" },
};
