import type { Span } from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";
import type { ArchiveGap, ArchiveStore, QueueBounds, QueuedRecord } from "../state/index.ts";
import { fittingInto } from "./fitting.ts";
import type { LostRecords } from "./lost-records.ts";
import { packSpans } from "./otlp/requests.ts";
import type { ArchiveRecord } from "./records/archive-record.ts";
import type { RecordBuilder } from "./records/record-builder.ts";
import type { SendQueue } from "./sender.ts";

export interface BuiltQueueOptions {
  store: Pick<ArchiveStore, "next" | "remove" | "lose" | "trim">;
  builder: Pick<RecordBuilder, "build" | "restart">;
  /** Approximate size of the records of `next`, in bytes. A larger one is returned alone. */
  maxBytes: number;
  bounds: QueueBounds;
  lost: LostRecords;
}

/**
 * A record to send. `doneUpTo` is the queue position up to which rows can be removed once this record is done.
 * Undefined if more records of its row follow.
 */
interface Built {
  record: ArchiveRecord;
  doneUpTo: number | undefined;
}

const MOST_ROWS = 256;
const NOT_KEPT =
  "they reached the limits of the records on the node before they were exported, or can't be read";
const TRIMMED = "the collector was unavailable, and more records waited than archive.maxQueued";
const REFUSED = "the collector refused them";
// Approximate size of a record's attributes.
const ATTRIBUTES_BYTES = 800;

/**
 * Builds queued rows into records to send. Keeps the records of a few rows in memory until they are done, then removes
 * the rows and queues their traces. Queues a gap for those that the collector refused, unless these are gaps.
 */
export class BuiltQueue implements SendQueue<ArchiveRecord> {
  readonly #options: BuiltQueueOptions;
  #built: Built[] = [];
  /** The last position that was built. */
  #builtUpTo = 0;
  /** The position up to which all is done. Rows may still be stored, if they could not be removed. */
  #doneUpTo = 0;
  #removedUpTo = 0;
  /** Of records that are done. */
  #traces: (readonly Span[])[] = [];
  #gaps: ArchiveGap[] = [];

  constructor(options: BuiltQueueOptions) {
    this.#options = options;
  }

  async next(most: number): Promise<ArchiveRecord[] | undefined> {
    if (this.#built.length === 0) await this.#build();
    this.#remove();
    if (this.#built.length === 0) return undefined;
    const fitting = fittingInto(this.#options.maxBytes, this.#built, ({ record }) => sizeOf(record));
    return fitting.slice(0, most).map(({ record }) => record);
  }

  done(count: number, refused: number): void {
    const done = this.#built.splice(0, count);
    const times = done.flatMap(({ record: { event, at } }) => (event === "nodekeeper.gap" ? [] : [at]));
    // Of several records, it is not known which ones.
    const records = Math.min(refused, times.length);
    if (records > 0)
      this.#gaps.push({ from: Math.min(...times), to: Math.max(...times), why: REFUSED, records });
    this.#traces.push(...done.flatMap(({ record }) => record.traces ?? []));
    this.#doneUpTo = done.findLast(({ doneUpTo }) => doneUpTo !== undefined)?.doneUpTo ?? this.#doneUpTo;
    this.#remove();
  }

  trim(): void {
    const { store, bounds, lost: report } = this.#options;
    try {
      const lost = store.trim(bounds, TRIMMED);
      if (lost === 0) return;
      report.add(lost, TRIMMED);
      this.#restart();
    } catch {
      // On a full disk nothing is queued either.
    }
  }

  // Builds all records again, after the queue was changed.
  #restart(): void {
    this.#built = [];
    this.#builtUpTo = this.#doneUpTo;
    this.#options.builder.restart();
  }

  async #build(): Promise<void> {
    const { store, maxBytes } = this.#options;
    for (;;) {
      const rows = store.next(this.#builtUpTo, MOST_ROWS);
      let bytes = 0;
      for (const [at, row] of rows.entries()) {
        const records = await this.#recordsOf(row);
        if (records === undefined) {
          await this.#lose(rows.slice(at));
          break;
        }
        this.#add(row, records);
        bytes += records.reduce((sum, record) => sum + sizeOf(record), 0);
        if (bytes >= maxBytes) return;
      }
      // Continues if no row had a record, or if rows were replaced by a gap, which must be read.
      if (rows.length === 0 || this.#built.length > 0) return;
    }
  }

  // A damaged row must not keep those after it from being exported.
  async #recordsOf(row: QueuedRecord): Promise<ArchiveRecord[] | undefined> {
    try {
      return await this.#options.builder.build(row);
    } catch {
      return undefined;
    }
  }

  #add(row: QueuedRecord, records: readonly ArchiveRecord[]): void {
    this.#builtUpTo = row.id;
    for (const [place, record] of records.entries())
      this.#built.push({ record, doneUpTo: place === records.length - 1 ? row.id : undefined });
    if (records.length > 0) return;
    const last = this.#built.at(-1);
    if (last) last.doneUpTo = row.id;
    else this.#doneUpTo = row.id;
  }

  // Replaces the first row, and the rows directly after it that can't be built either, by a gap.
  async #lose(rows: readonly QueuedRecord[]): Promise<void> {
    const { store, builder, lost: report } = this.#options;
    let count = 1;
    while (count < rows.length && (await this.#recordsOf(rows[count]!)) === undefined) count++;
    report.add(store.lose(rows[0]!.id, rows[count - 1]!.id, NOT_KEPT), NOT_KEPT);
    // The first row that is kept is built again.
    builder.restart();
  }

  // On a full disk, the rows are removed later. Until then, an agent that starts exports them again.
  #remove(): void {
    if (this.#removedUpTo === this.#doneUpTo) return;
    try {
      this.#options.store.remove(this.#doneUpTo, this.#traces.map(packSpans), this.#gaps);
      this.#traces = [];
      this.#gaps = [];
      this.#removedUpTo = this.#doneUpTo;
    } catch {}
  }
}

function sizeOf({ body }: ArchiveRecord): number {
  return body.length + ATTRIBUTES_BYTES;
}
