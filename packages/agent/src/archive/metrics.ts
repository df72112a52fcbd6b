import { metricTable, type Registry } from "@nodekeeper/core/lib";

/** What the metrics read on each scrape. */
export interface ArchiveState {
  /** Number of queued records. */
  queuedRecords(): number;
  /** Number of queued traces. */
  queuedTraces(): number;
  /** Age of the oldest queued record in seconds; 0 if there is none. */
  lagSeconds(): number;
}

/** The module's metrics. */
export function createArchiveMetrics(registry: Registry, state: ArchiveState) {
  const { counter, scraped } = metricTable(registry, "nodekeeper_archive_");
  scraped("queued_records", "Records that wait for their export in the state database.", () =>
    state.queuedRecords(),
  );
  scraped("queued_traces", "Traces of evictions that wait for their export in the state database.", () =>
    state.queuedTraces(),
  );
  scraped("lag_seconds", "Age of the oldest record that waits for its export; 0 if none waits.", () =>
    state.lagSeconds(),
  );
  return {
    exported: counter("exported_records_total", "Log records that the collector accepted."),
    dropped: counter(
      "dropped_records_total",
      "Records that were not exported: `refused` by the collector, or `lost` because they were deleted before.",
      ["reason"],
    ),
    droppedTraces: counter(
      "dropped_traces_total",
      "Traces that were not exported: `refused` by the collector, or `lost` because they were deleted before.",
      ["reason"],
    ),
    bytes: counter("sent_bytes_total", "Bytes of requests before compression, with those that failed."),
    failures: counter(
      "failed_requests_total",
      "Requests that the collector did not accept: `unavailable`, `denied`, `unsupported`, `tooLarge` or `refused`.",
      ["reason"],
    ),
  };
}

export type ArchiveMetrics = ReturnType<typeof createArchiveMetrics>;
