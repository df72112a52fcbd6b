import type { Clock } from "@nodekeeper/core/lib";
import type { Pod } from "../runtime/index.ts";
import type { LogPosition } from "./cursor.ts";
import { EventReader, type LogReader, type ReaderHost } from "./event-reader.ts";
import { EventRing } from "./event-ring.ts";
import type { NewEvent, PodLifecycleEvent } from "./events.ts";
import type { LogItem } from "./log-item.ts";

export interface EventLogOptions {
  /** How many events are kept, at least 1. */
  capacity: number;
  clock: Clock;
  /** Every pod as the events so far leave it, for consumers that begin or fell behind. */
  snapshot: () => readonly Pod[];
  /**
   * Undefined when the snapshot shows the node; until then a promise of it, which rejects when the signal aborts.
   * Default: it always does.
   */
  whenKnown?: (signal: AbortSignal) => Promise<void> | undefined;
  /** Makes the id of a new log: letters and digits, at most 32. */
  newId: () => string;
  onFellOff?: (missed: number) => void;
}

export interface ReadOptions {
  /** Go on after this position; without it the consumer begins with a snapshot. */
  after?: LogPosition;
}

/** The log as those see it who only read it, item by item. */
export interface EventSource {
  readonly position: LogPosition;
  read(options: ReadOptions, signal: AbortSignal): AsyncIterable<LogItem>;
}

/**
 * A bounded log of events that any number of consumers read at their own pace. A consumer is a cursor: nothing is
 * queued for it, so that its slowness costs nobody else an event.
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

  /** The id that positions of this log carry. */
  get id(): string {
    return this.#id;
  }

  /** The sequence number of the newest event; 0 before the first. */
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

  /** How many events the slowest consumer is behind. */
  get slowest(): number {
    let slowest = 0;
    for (const reader of this.#readers) slowest = Math.max(slowest, this.#last - reader.sequence);
    return slowest;
  }

  /** Positions given so far stop being positions of this log: what they stand for may not survive the agent. */
  renew(): void {
    this.#id = this.#options.newId();
  }

  /** Goes on where an earlier run of the agent ended. Call it before anything is appended or read. */
  restore(id: string, last: number, events: Iterable<PodLifecycleEvent>): void {
    this.#id = id;
    for (const event of events) this.#ring.put(event.sequence, event.at, event);
    this.#last = last;
  }

  /** Appends events and gives them with their places; consumers see them in their next turn. */
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
   * Reads on for as long as the signal lets it, waiting for what is still to come. The consumer counts from now on,
   * until it ends the iteration or the signal aborts. A snapshot waits until the node is known, however long that takes.
   */
  read(options: ReadOptions, signal: AbortSignal): LogReader {
    const reader = new EventReader(this, options.after, signal, () => this.#readers.delete(reader));
    if (!signal.aborted) this.#readers.add(reader);
    return reader;
  }

  /** The position after which the kept events of the last while begin, by wall time. Milliseconds since the epoch. */
  positionAt(wallMs: number): LogPosition {
    for (let sequence = this.#ring.first; sequence <= this.#last; sequence++) {
      if ((this.#ring.at(sequence) ?? 0) >= wallMs) return { log: this.#id, sequence: sequence - 1 };
    }
    return this.position;
  }

  /** The event of a sequence number, if the log still has it. */
  get(sequence: number): PodLifecycleEvent | undefined {
    return this.#ring.get(sequence);
  }

  snapshot(): readonly Pod[] {
    return this.#options.snapshot();
  }

  /** For readers: as the option of that name. */
  whenKnown(signal: AbortSignal): Promise<void> | undefined {
    return this.#options.whenKnown?.(signal);
  }

  /** A consumer lost events; called by its reader. */
  fellOff(missed: number): void {
    this.#options.onFellOff?.(missed);
  }
}
