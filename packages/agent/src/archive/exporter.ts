import { ArchiveUnavailable, StateNotWritable } from "@nodekeeper/api/errors";
import {
  deadlineScope,
  type HealthCheck,
  type HealthResult,
  type Runnable,
  sleepOrAbort,
} from "@nodekeeper/core/lib";
import type { ArchiveStore } from "../state/index.ts";
import { BuiltQueue } from "./built-queue.ts";
import { LostRecords } from "./lost-records.ts";
import { encodeLogs, encodeTraces } from "./otlp/requests.ts";
import type { ArchiveRecord } from "./records/archive-record.ts";
import type { RecordBuilder } from "./records/record-builder.ts";
import { Sender, type SenderOptions } from "./sender.ts";
import { type OutgoingTrace, TraceQueue } from "./trace-queue.ts";

export interface ArchiveExporterOptions extends SenderOptions {
  store: ArchiveStore;
  builder: RecordBuilder;
  settings: { interval: number; timeout: number; maxBatchSize: number; maxQueued: number };
}

const MOST_QUEUED_BYTES = 32 * 1024 * 1024;
// Less than the agent's deadline for stopping, which other parts share.
const LAST_FLUSH_MS = 1_000;

/**
 * Exports queued records, in order, and the traces of evictions to a collector.
 *
 * 1. A record or trace is removed from its queue after the collector has accepted it. Delivery is at least once, always
 *    with the same ID: the collector may receive duplicates if the agent is killed or a response is lost.
 * 2. The trace of an eviction is queued when its records are exported. Records and traces are sent independently.
 * 3. While the collector is unavailable, both remain queued and are retried: see `Sender`. The queues are bounded: the
 *    oldest records are replaced by a record of the gap, and the oldest traces are dropped.
 * 4. Items that the collector can't process are dropped and logged. Later items are exported.
 * 5. No failure stops the exporter, and thereby the agent. Errors of the state database are reported and retried, too.
 * 6. On shutdown, queued items are sent for at most 1 s in total. A queue whose last attempt failed is skipped. The
 *    first failed request or dropped item ends the flush of its queue. Unsent items remain queued.
 */
export class ArchiveExporter implements Runnable {
  readonly name = "archive";
  readonly #options: ArchiveExporterOptions;
  readonly #records: Sender<ArchiveRecord>;
  readonly #traces: Sender<OutgoingTrace>;

  constructor(options: ArchiveExporterOptions) {
    this.#options = options;
    this.#records = recordSender(options);
    this.#traces = traceSender(options);
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#start(signal);
    await Promise.all([this.#records.run(signal), this.#traces.run(signal)]);
    await this.#flush();
    this.#options.transport[Symbol.dispose]();
  }

  /** Does not fail while the collector is unavailable, but warns. */
  healthCheck(): HealthCheck {
    return { name: "ArchiveExported", kind: "ready", check: () => this.#health() };
  }

  #health(): HealthResult {
    const time = (at: number) => new Date(at).toISOString();
    const { exportedAt } = this.#records;
    const message = exportedAt === undefined ? "nothing exported yet" : `last export at ${time(exportedAt)}`;
    const warnings = (
      [
        ["records", this.#records],
        ["traces", this.#traces],
      ] as const
    ).flatMap(([what, { failure }]) =>
      failure ? [`${what} can't be exported since ${time(failure.since)}: ${failure.message}`] : [],
    );
    if (warnings.length === 0) return { ok: true, message };
    return { ok: true, message, warning: warnings.join("; "), errorId: ArchiveUnavailable.id };
  }

  // Creates the queue's triggers, retrying on failure. Records written before are queued once this succeeds.
  async #start(signal: AbortSignal): Promise<void> {
    const { store, clock, log, settings } = this.#options;
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        store.start();
        return;
      } catch (error) {
        if (failures === 0)
          log.error(
            { errorId: StateNotWritable.id, err: error },
            "failed to queue records for their export, retrying",
          );
        await sleepOrAbort(clock, settings.interval, signal);
      }
    }
  }

  // Traces are queued by the export of their records.
  async #flush(): Promise<void> {
    using scope = deadlineScope(this.#options.clock, { ms: LAST_FLUSH_MS, name: "last export" });
    for (const sender of [this.#records, this.#traces])
      if (sender.failure === undefined) await sender.drain(scope.signal, true).catch(() => {});
  }
}

function queueOptions({ store, settings, metrics, log }: ArchiveExporterOptions) {
  const { maxBatchSize: maxBytes, maxQueued } = settings;
  const bounds = { records: maxQueued, bytes: MOST_QUEUED_BYTES };
  return { store, maxBytes, bounds, lost: new LostRecords(metrics, log) };
}

function recordSender(options: ArchiveExporterOptions): Sender<ArchiveRecord> {
  const { builder, metrics, clock } = options;
  return new Sender(
    {
      what: "records",
      queue: new BuiltQueue({ ...queueOptions(options), builder }),
      encode: (records, origin) => encodeLogs(records, origin, clock.now()),
      isOptional: false,
      onAccepted: (count) => metrics.exported.inc(count),
      onRefused: (count) => metrics.dropped.inc({ reason: "refused" }, count),
      describe: ({ id, event, message }) => ({ id, event, message }),
    },
    options,
  );
}

function traceSender(options: ArchiveExporterOptions): Sender<OutgoingTrace> {
  const { metrics } = options;
  return new Sender(
    {
      what: "traces",
      queue: new TraceQueue(queueOptions(options)),
      encode: (traces, origin) =>
        encodeTraces(
          traces.flatMap(({ spans }) => spans),
          origin,
        ),
      // A collector may receive logs only.
      isOptional: true,
      onAccepted: () => {},
      onRefused: (count) => metrics.droppedTraces.inc({ reason: "refused" }, count),
      describe: ({ spans: [span] }) => ({
        traceId: Buffer.from(span?.traceId ?? []).toString("hex"),
      }),
    },
    options,
  );
}
