import { ArchiveRecordsLost } from "@nodekeeper/api/errors";
import type { Logger } from "@nodekeeper/core/lib";
import type { ArchiveMetrics } from "./metrics.ts";

/** Counts and logs records that were replaced by a gap, and traces that were deleted. */
export class LostRecords {
  readonly #metrics: ArchiveMetrics;
  readonly #log: Logger;

  constructor(metrics: ArchiveMetrics, log: Logger) {
    this.#metrics = metrics;
    this.#log = log;
  }

  /** @param records number of records that were replaced */
  add(records: number, why: string): void {
    if (records === 0) return;
    this.#metrics.dropped.inc({ reason: "lost" }, records);
    this.#log.warn(
      { errorId: ArchiveRecordsLost.id, records, why },
      "records were deleted before they were exported",
    );
  }

  /** @param traces number of traces that were deleted */
  addTraces(traces: number): void {
    if (traces === 0) return;
    this.#metrics.droppedTraces.inc({ reason: "lost" }, traces);
    this.#log.warn(
      { errorId: ArchiveRecordsLost.id, traces },
      "traces were deleted before they were exported",
    );
  }
}
