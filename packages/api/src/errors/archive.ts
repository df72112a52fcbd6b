import { declareError, declareProblem } from "./declare.ts";

// NK19xx: the export of records, and the archive that has them.

export const ArchiveUnavailable = declareProblem({
  id: "NK1901",
  title: "Records can't be exported",
  cause:
    "The collector at `archive.endpoint` can't be reached, is overloaded, or refuses the agent's credentials. The records stay queued in the state database; nothing else is affected.",
  remedy:
    "The message has the collector's response. Check `archive.endpoint`, `archive.protocol`, `archive.caFile` and `archive.headersFile`, and network policies. The agent retries; `nodekeeper_archive_lag_seconds` shows how far it is behind.",
});

export const ArchiveRefused = declareProblem({
  id: "NK1902",
  title: "The collector refused records",
  cause:
    "The collector answered that it can't process these records, or some of them: it is no receiver of OTLP logs, or has a limit on their size. They are not sent again. For traces: it may have no receiver for them.",
  remedy:
    "The log line has the collector's response and the first of the records. Correct the collector, or disable `archive.traces`.",
});

export const ArchiveRecordsLost = declareProblem({
  id: "NK1903",
  title: "Records were deleted before they were exported",
  cause:
    "The collector was unavailable for so long that `archive.maxQueued` records waited, or that records reached the limits of `eviction.records`.",
  remedy:
    "Correct the collector. The archive has a record `nodekeeper.gap` with the time and the number of lost records.",
});

export const ArchiveNotReadable = declareError({
  id: "NK1904",
  code: "unavailable",
  message: "archive {url}: {problem}",
  title: "The archive can't be read",
  cause:
    "The store at `--archive` can't be reached, refuses the credentials or the query, or its answer is no answer of VictoriaLogs.",
  remedy:
    "The message has the store's response. Check `--archive`, `--archive-ca` and `--archive-headers`: the URL is that of the store, without `/select/logsql/query`.",
});

export const NodeNotArchived = declareError({
  id: "NK1905",
  code: "notFound",
  title: "The archive has no record of the node",
  cause:
    "No agent on a node of this name exported records to the store at `--archive`, or the store has deleted them by now (`-retentionPeriod` of VictoriaLogs).",
  remedy: "Check the node's name, `archive.endpoint` of its agent, and `--archive-attributes`.",
});
