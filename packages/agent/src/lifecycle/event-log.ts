import type { Clock } from "@nodekeeper/core/lib";
import type { Pod } from "../runtime/index.ts";
import type { LogPosition } from "./cursor.ts";
import { EventReader, type LogReader, type ReaderHost } from "./event-reader.ts";
import { EventRing } from "./event-ring.ts";
import type { NewEvent, PodLifecycleEvent } from "./events.ts";
import type { LogItem } from "./log-item.ts";

export interface EventLogOptions {
  /** Number of events retained, at least 1. */
  capacity: number;
  clock: Clock;
  /** The current state of every pod, for consumers that start or fell behind. */
  snapshot: () => readonly Pod[];
  /**
   * Returns undefined once the snapshot reflects the node, before that a promise for it, which rejects when the signal
   * aborts. Default: the snapshot is always valid.
   */
  whenKnown?: (signal: AbortSignal) => Promise<void> | undefined;
  /** Generates the id of a new log: at most 32 letters and digits. */
  newId: () => string;
  onFellOff?: (missed: number) => void;
}

export interface ReadOptions {
  /** Position to continue after; without it the consumer starts with a snapshot. */
  after?: LogPosition;
}

/** Read access to the log. */
export interface EventSource {
  readonly position: LogPosition;
  read(options: ReadOptions, signal: AbortSignal): AsyncIterable<LogItem>;
}

/**
 * A bounded log of events that any number of consumers read at their own pace. A consumer is a cursor without a queue,
 * so a slow consumer does not cause others to lose events.
 */
export class EventLog implements ReaderHost, EventSource {
  readonly #options: EventLogOptions;
  readonly #readers = new Set<EventReader>();
  readonly #ring: EventRing;
  #id: string;
  #last = 0;

  constructor(options: EventLogOptions) {
    this.#options = options;
    this.#id = options.newId();
    this.#ring = new EventRing(options.capacity);
  }

  /** The id in positions of this log. */
  get id(): string {
    return this.#id;
  }

  /** Sequence number of the newest event; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  get length(): number {
    return this.#ring.length;
  }

  get position(): LogPosition {
    return { log: this.#id, sequence: this.#last };
  }

  get consumers(): number {
    return this.#readers.size;
  }

  /** Number of events that the slowest consumer has not read. */
  get slowest(): number {
    let slowest = 0;
    for (const reader of this.#readers) slowest = Math.max(slowest, this.#last - reader.sequence);
    return slowest;
  }

  /** Changes the log's id, so that earlier positions are invalid: their events may not survive a restart. */
  renew(): void {
    this.#id = this.#options.newId();
  }

  /** Continues the log of an earlier agent process. Call before anything is appended or read. */
  restore(id: string, last: number, events: Iterable<PodLifecycleEvent>): void {
    this.#id = id;
    for (const event of events) this.#ring.put(event.sequence, event.at, event);
    this.#last = last;
  }

  /** Appends events and returns them with their sequence numbers. Consumers are notified. */
  append(added: readonly NewEvent[]): PodLifecycleEvent[] {
    if (added.length === 0) return [];
    const at = this.#options.clock.now();
    const events = added.map((event) => {
      const sequence = ++this.#last;
      this.#ring.put(sequence, at, event);
      return { ...event, sequence, at };
    });
    for (const reader of this.#readers) reader.wake();
    return events;
  }

  /**
   * Iterates over events and waits for new ones, until the iteration ends or the signal aborts. The consumer is counted
   * in metrics meanwhile. A snapshot is delayed until it reflects the node, without a time limit.
   */
  read(options: ReadOptions, signal: AbortSignal): LogReader {
    const reader = new EventReader(this, options.after, signal, () => this.#readers.delete(reader));
    if (!signal.aborted) this.#readers.add(reader);
    return reader;
  }

  /** The position before the first retained event seen at or after a time in milliseconds since the epoch. */
  positionAt(wallMs: number): LogPosition {
    for (let sequence = this.#ring.first; sequence <= this.#last; sequence++) {
      if ((this.#ring.at(sequence) ?? 0) >= wallMs) return { log: this.#id, sequence: sequence - 1 };
    }
    return this.position;
  }

  /** The event with a sequence number, if it is retained. */
  get(sequence: number): PodLifecycleEvent | undefined {
    return this.#ring.get(sequence);
  }

  snapshot(): readonly Pod[] {
    return this.#options.snapshot();
  }

  /** For readers: see the option of the same name. */
  whenKnown(signal: AbortSignal): Promise<void> | undefined {
    return this.#options.whenKnown?.(signal);
  }

  /** Called by a reader whose consumer lost events. */
  fellOff(missed: number): void {
    this.#options.onFellOff?.(missed);
  }
}
