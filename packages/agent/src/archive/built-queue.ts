import { setImmediate } from "node:timers/promises";
import type { ArchiveStore, QueuedRecord } from "../state/index.ts";
import type { LostRecords } from "./lost-records.ts";
import type { ArchiveRecord } from "./records/archive-record.ts";
import type { RecordBuilder } from "./records/record-builder.ts";

export interface BuiltQueueOptions {
  store: Pick<ArchiveStore, "next" | "remove" | "lose">;
  builder: Pick<RecordBuilder, "build" | "restart">;
  /** Approximate size of the records of `next`, in bytes. A larger one is returned alone. */
  maxBytes: number;
  lost: LostRecords;
}

/** A record, and the queue position up to which nothing is left after it. Undefined if more of its row follow. */
interface Built {
  record: ArchiveRecord;
  doneUpTo: number | undefined;
}

const MOST_ROWS = 256;
const NOT_KEPT =
  "they reached the limits of the records on the node before they were exported, or can't be read";
// Attributes of a record, about.
const ATTRIBUTES_BYTES = 800;

/** The queue as records to send: those of a few rows are built and kept until they are done. */
export class BuiltQueue {
  readonly #options: BuiltQueueOptions;
  #built: Built[] = [];
  /** The last position that was built. */
  #builtUpTo = 0;
  /** The position up to which all is done. Rows may still be stored, if they could not be removed. */
  #doneUpTo = 0;
  #removedUpTo = 0;
  #current: ArchiveRecord[] | undefined;

  constructor(options: BuiltQueueOptions) {
    this.#options = options;
  }

  /** Returns the next records: the same array until `done`, `halve` or `restart`. Undefined if there are none. */
  async next(): Promise<ArchiveRecord[] | undefined> {
    if (this.#current) return this.#current;
    if (this.#built.length === 0) await this.#build();
    this.#remove();
    if (this.#built.length === 0) return undefined;
    this.#current = this.#built.slice(0, this.#fitting()).map(({ record }) => record);
    return this.#current;
  }

  /** Removes the records that `next` returned. */
  done(): void {
    const done = this.#built.splice(0, this.#current?.length ?? 0);
    this.#current = undefined;
    this.#doneUpTo = done.findLast(({ doneUpTo }) => doneUpTo !== undefined)?.doneUpTo ?? this.#doneUpTo;
    this.#remove();
  }

  /** Makes `next` return the first half of its records. */
  halve(): void {
    this.#current = this.#current?.slice(0, Math.ceil(this.#current.length / 2));
  }

  /** Builds all records again, after the queue was changed. */
  restart(): void {
    this.#built = [];
    this.#current = undefined;
    this.#builtUpTo = this.#doneUpTo;
    this.#options.builder.restart();
  }

  async #build(): Promise<void> {
    const { store, maxBytes } = this.#options;
    for (;;) {
      const rows = store.next(this.#builtUpTo, MOST_ROWS);
      let bytes = 0;
      for (const [at, row] of rows.entries()) {
        const records = this.#recordsOf(row);
        if (records === undefined) {
          this.#lose(rows.slice(at));
          break;
        }
        this.#add(row, records);
        bytes += records.reduce((sum, record) => sum + sizeOf(record), 0);
        if (bytes >= maxBytes) return;
        // Decoding a round with a thousand pods takes a few milliseconds.
        if (row.kind === "round") await setImmediate();
      }
      // Rows may have no records, and a gap is read again.
      if (rows.length === 0 || this.#built.length > 0) return;
    }
  }

  // A damaged row must not keep those after it from being exported.
  #recordsOf(row: QueuedRecord): ArchiveRecord[] | undefined {
    try {
      return this.#options.builder.build(row);
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

  // The first row and those after it as far as they are not kept either.
  #lose(rows: readonly QueuedRecord[]): void {
    const { store, lost: report } = this.#options;
    const kept = rows.findIndex((row) => this.#recordsOf(row) !== undefined);
    const lost = kept < 0 ? rows : rows.slice(0, kept);
    report.add(store.lose(lost[0]!.id, lost.at(-1)!.id, NOT_KEPT), NOT_KEPT);
    // The first row that is kept is built again.
    this.#options.builder.restart();
  }

  #fitting(): number {
    let bytes = 0;
    const over = this.#built.findIndex(({ record }, place) => {
      bytes += sizeOf(record);
      return place > 0 && bytes > this.#options.maxBytes;
    });
    return over < 0 ? this.#built.length : over;
  }

  // On a full disk, the rows are removed later. Until then, an agent that starts exports them again.
  #remove(): void {
    if (this.#removedUpTo === this.#doneUpTo) return;
    try {
      this.#options.store.remove(this.#doneUpTo);
      this.#removedUpTo = this.#doneUpTo;
    } catch {}
  }
}

function sizeOf({ body }: ArchiveRecord): number {
  return body.length + ATTRIBUTES_BYTES;
}
