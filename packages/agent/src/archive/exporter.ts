import { ArchiveRefused, ArchiveUnavailable, StateNotWritable } from "@nodekeeper/api/errors";
import {
  abortable,
  Backoff,
  type Clock,
  deadlineScope,
  type HealthCheck,
  type HealthResult,
  type Logger,
  messageOf,
  type Runnable,
  retryPolicies,
  sleepOrAbort,
} from "@nodekeeper/core/lib";
import type { ArchiveStore } from "../state/index.ts";
import { BuiltQueue } from "./built-queue.ts";
import { LostRecords } from "./lost-records.ts";
import type { ArchiveMetrics } from "./metrics.ts";
import type { Delivery, OtlpRequest, Transport } from "./otlp/delivery.ts";
import type { Origin } from "./otlp/logs.ts";
import { encodeLogs, encodeTraces } from "./otlp/requests.ts";
import type { ArchiveRecord } from "./records/archive-record.ts";
import type { RecordBuilder } from "./records/record-builder.ts";

export interface ArchiveExporterOptions {
  store: ArchiveStore;
  builder: RecordBuilder;
  transport: Transport;
  /** Returns what all records have in common. Rejects only with the signal's reason. */
  origin: (signal: AbortSignal) => Promise<Origin>;
  settings: { interval: number; timeout: number; maxBatchSize: number; maxQueued: number };
  metrics: ArchiveMetrics;
  clock: Clock;
  log: Logger;
}

const MOST_QUEUED_BYTES = 32 * 1024 * 1024;
// Less than the agent's deadline for stopping, which other parts share.
const LAST_FLUSH_MS = 1_000;
const LONGEST_RETRY_AFTER_MS = 300_000;
const TRIMMED = "the collector was unavailable, and more records waited than archive.maxQueued";

/**
 * Exports queued records to a collector, in their order.
 *
 * 1. A record leaves the queue after the collector accepted it, so that it is exported at least once, always with the same
 *    ID. The collector may see it twice if the agent is killed, or if a response is lost.
 * 2. Requests are sent one after the other. While the collector is unavailable, they are repeated with growing delays, and
 *    after the delay that it asks for. The queue is bounded: its oldest records are replaced by a record of the gap.
 * 3. Records that the collector can't process are dropped and logged. Those after them are exported.
 * 4. No failure ends the exporter, and with it the agent: also one of the state database is reported and retried.
 * 5. At the stop, what waits is sent in one second, unless the collector is unavailable.
 */
export class ArchiveExporter implements Runnable {
  readonly name = "archive";
  readonly #options: ArchiveExporterOptions;
  readonly #built: BuiltQueue;
  readonly #lost: LostRecords;
  readonly #backoff = new Backoff(retryPolicies.archive);
  /** The last failure. Undefined if the last request was accepted. */
  #failure: { since: number; message: string } | undefined;
  #exportedAt: number | undefined;
  /** Monotonic milliseconds. */
  #trimmedAt = 0;
  /** The records whose logs were sent, but not their traces. */
  #sentLogs: readonly ArchiveRecord[] | undefined;

  constructor(options: ArchiveExporterOptions) {
    this.#options = options;
    const { store, builder, settings, metrics, log } = options;
    this.#lost = new LostRecords(metrics, log);
    this.#built = new BuiltQueue({
      store,
      builder,
      maxBytes: settings.maxBatchSize,
      lost: this.#lost,
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { transport, settings, clock } = this.#options;
    await this.#start(signal);
    while (!signal.aborted) {
      await this.#drain(signal).catch((error) => {
        if (!signal.aborted) this.#failed(messageOf(error));
      });
      await sleepOrAbort(clock, settings.interval, signal);
    }
    if (this.#failure === undefined) await this.#flush();
    transport[Symbol.dispose]();
  }

  /** Does not fail while the collector is unavailable, but warns. */
  healthCheck(): HealthCheck {
    return { name: "ArchiveExported", kind: "ready", check: () => this.#health() };
  }

  #health(): HealthResult {
    const time = (at: number) => new Date(at).toISOString();
    const message =
      this.#exportedAt === undefined ? "nothing exported yet" : `last export at ${time(this.#exportedAt)}`;
    if (this.#failure === undefined) return { ok: true, message };
    const warning = `records can't be exported since ${time(this.#failure.since)}: ${this.#failure.message}`;
    return { ok: true, message, warning, errorId: ArchiveUnavailable.id };
  }

  // Without the queue's triggers no record is queued: a later start finds what was written meanwhile.
  async #start(signal: AbortSignal): Promise<void> {
    const { store, clock, log } = this.#options;
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
        await sleepOrAbort(clock, this.#options.settings.interval, signal);
      }
    }
  }

  async #flush(): Promise<void> {
    const { clock } = this.#options;
    using scope = deadlineScope(clock, { ms: LAST_FLUSH_MS, name: "last export" });
    await this.#drain(scope.signal, true).catch(() => {});
  }

  // Exports until nothing waits. @param isLast whether to give up after a failure
  async #drain(signal: AbortSignal, isLast = false): Promise<void> {
    for (;;) {
      const records = await this.#built.next();
      if (records === undefined) return;
      signal.throwIfAborted();
      const waitMs = await this.#export(records, signal);
      if (waitMs !== undefined && isLast) return;
      // A collector that is slow, or that fails, costs a bounded part of the disk.
      if (waitMs !== undefined) await sleepOrAbort(this.#options.clock, this.#backoff.next(waitMs), signal);
      else if (this.#options.clock.monotonic() - this.#trimmedAt < this.#options.settings.interval) continue;
      this.#trimmedAt = this.#options.clock.monotonic();
      this.#trim();
    }
  }

  // Returns the delay that the collector asked for if the records must be sent again. Undefined if they are done.
  async #export(records: readonly ArchiveRecord[], signal: AbortSignal): Promise<number | undefined> {
    const { origin, clock, metrics } = this.#options;
    const about = await origin(signal);
    if (this.#sentLogs !== records) {
      const logs = await this.#send(encodeLogs(records, about, clock.now()), signal);
      if (logs.kind === "tooLarge" && records.length > 1) {
        this.#built.halve();
        return undefined;
      }
      if (logs.kind === "unavailable" || logs.kind === "denied") return waitOf(logs);
      // A collector may count anything.
      if (logs.kind === "accepted")
        metrics.exported.inc(records.length - Math.min(Math.max(logs.rejected, 0), records.length));
      this.#reportRefusal("records", logs, records);
    }
    this.#sentLogs = records;
    const traces = encodeTraces(records, about);
    const delivery = traces && (await this.#send(traces, signal));
    if (delivery?.kind === "unavailable") return waitOf(delivery);
    // A collector without a pipeline for traces must not keep the logs from being exported.
    if (delivery) this.#reportRefusal("traces", delivery, records);
    this.#built.done();
    return undefined;
  }

  async #send(request: OtlpRequest, signal: AbortSignal): Promise<Delivery> {
    const { transport, clock, settings, metrics } = this.#options;
    using scope = deadlineScope(clock, { ms: settings.timeout, name: "collector" }, signal);
    const sending = abortable(transport.send(request, scope.signal), scope.signal);
    const delivery = await sending.catch((error): Delivery => {
      signal.throwIfAborted();
      return { kind: "unavailable", message: messageOf(error), retryAfterMs: 0 };
    });
    metrics.bytes.inc(request.body.length);
    if (delivery.kind !== "accepted") metrics.failures.inc({ reason: delivery.kind });
    this.#note(request, delivery);
    return delivery;
  }

  #note({ signal }: OtlpRequest, delivery: Delivery): void {
    const { clock, log } = this.#options;
    const isFailure = delivery.kind === "unavailable" || (delivery.kind === "denied" && signal === "logs");
    if (!isFailure) {
      if (this.#failure) log.info({}, "records are exported again");
      this.#failure = undefined;
      this.#exportedAt = clock.now();
      this.#backoff.reset();
      return;
    }
    this.#failed(delivery.message);
  }

  #failed(message: string): void {
    const { clock, log } = this.#options;
    if (this.#failure?.message !== message)
      log.warn({ errorId: ArchiveUnavailable.id, problem: message }, "failed to export records, retrying");
    this.#failure = { since: this.#failure?.since ?? clock.now(), message };
  }

  #reportRefusal(what: "records" | "traces", delivery: Delivery, records: readonly ArchiveRecord[]): void {
    const { metrics, log } = this.#options;
    const isAccepted = delivery.kind === "accepted";
    const dropped = isAccepted ? delivery.rejected : records.length;
    if (what === "records" && dropped > 0) metrics.dropped.inc({ reason: "refused" }, dropped);
    if (isAccepted && delivery.message === "" && dropped === 0) return;
    log.error(
      {
        errorId: ArchiveRefused.id,
        problem: delivery.message,
        dropped,
        of: records.length,
        first: { id: records[0]!.id, event: records[0]!.event, message: records[0]!.message },
      },
      isAccepted && dropped === 0 ? `collector accepted ${what} with a warning` : `collector refused ${what}`,
    );
  }

  #trim(): void {
    const { store, settings } = this.#options;
    try {
      const lost = store.trim({ records: settings.maxQueued, bytes: MOST_QUEUED_BYTES }, TRIMMED);
      if (lost === 0) return;
      this.#lost.add(lost, TRIMMED);
      this.#built.restart();
    } catch {
      // On a full disk nothing is queued either.
    }
  }
}

function waitOf(delivery: Delivery): number {
  return delivery.kind === "unavailable" ? Math.min(delivery.retryAfterMs, LONGEST_RETRY_AFTER_MS) : 0;
}
