import type { Clock, NodekeeperError } from "@nodekeeper/core/lib";
import type { Pod } from "../runtime/index.ts";
import type { LogPosition } from "./cursor.ts";
import { EventReader, type LogCursor, type LogReader, type ReaderHost } from "./event-reader.ts";
import { EventRing } from "./event-ring.ts";
import type { NewEvent, PodLifecycleEvent } from "./events.ts";
import type { LogItem } from "./log-item.ts";
import type { StartGate } from "./start-gate.ts";

export interface EventLogOptions {
  /** Number of events to retain, at least 1. */
  capacity: number;
  clock: Clock;
  /** Returns the current state of every pod, for consumers that start or fell behind. */
  snapshot: () => readonly Pod[];
  /** Closed until the snapshot reflects the node. Default: the snapshot is always valid. */
  gate?: Pick<StartGate, "isOpen" | "wait" | "waitBriefly" | "refusal">;
  /** Generates the ID of a new log: at most 32 lowercase letters and digits. */
  newId: () => string;
  onFellOff?: (missed: number) => void;
}

export interface ReadOptions {
  /** Position to continue after. If undefined, the consumer starts with a snapshot. */
  after?: LogPosition;
}

/** Read access to the log. */
export interface EventSource {
  readonly position: LogPosition;
  read(options: ReadOptions, signal: AbortSignal): AsyncIterable<LogItem>;
}

/**
 * A bounded event log that any number of consumers read at their own pace. A consumer is a cursor without a
 * queue, so a slow consumer does not cause others to lose events.
 */
export class EventLog implements ReaderHost, EventSource {
  readonly #options: EventLogOptions;
  readonly #readers = new Set<LogCursor>();
  // Wakes the readers that wait for the next event.
  readonly #waiting = new Set<() => void>();
  readonly #ring: EventRing;
  #id: string;
  // Wall clock milliseconds; 0 if no log was restored.
  #restoredAt = 0;
  #last = 0;

  constructor(options: EventLogOptions) {
    this.#options = options;
    this.#id = options.newId();
    this.#ring = new EventRing(options.capacity);
  }

  /** ID of this log in positions. */
  get id(): string {
    return this.#id;
  }

  /** Sequence number of the latest event; 0 before the first. */
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

  /** Number of events that the slowest consumer has not read yet. */
  get slowest(): number {
    let slowest = 0;
    for (const reader of this.#readers) slowest = Math.max(slowest, this.#last - reader.sequence);
    return slowest;
  }

  /** Changes the log's ID, which invalidates earlier positions: their events may not survive a restart. */
  renew(): void {
    this.#id = this.#options.newId();
  }

  /** Continues the log of an earlier agent process. Must be called before any append or read. */
  restore(id: string, last: number, events: Iterable<PodLifecycleEvent>): void {
    this.#id = id;
    this.#restoredAt = this.#options.clock.now();
    for (const event of events) this.#ring.put(event.sequence, event.at, event);
    this.#last = last;
  }

  /** Appends events, notifies consumers, and returns the events with their sequence numbers. */
  append(added: readonly NewEvent[]): PodLifecycleEvent[] {
    if (added.length === 0) return [];
    const at = this.#options.clock.now();
    const events = added.map((event) => {
      const sequence = ++this.#last;
      this.#ring.put(sequence, at, event);
      return { ...event, sequence, at };
    });
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
    return events;
  }

  /**
   * Iterates over events and waits for new ones until the iteration ends or the signal aborts. The consumer
   * is counted in metrics meanwhile. A snapshot is delayed until it reflects the node, without a timeout.
   */
  read(options: ReadOptions, signal: AbortSignal): LogReader {
    return new EventReader(this, options.after, signal);
  }

  join(reader: LogCursor): void {
    this.#readers.add(reader);
  }

  leave(reader: LogCursor, wake: (() => void) | undefined): void {
    this.#readers.delete(reader);
    if (wake) this.#waiting.delete(wake);
  }

  whenAppended(wake: () => void): void {
    this.#waiting.add(wake);
  }

  /**
   * Returns the position before the first retained event observed at or after `wallMs` (milliseconds since the epoch).
   * If there is none, returns the end of the log if `wallMs` is later than the restoration of the log, because events
   * that could not be restored are older; otherwise the position after the last retained event.
   */
  positionAt(wallMs: number): LogPosition {
    const first = this.#ring.firstSince(wallMs);
    if (first === undefined && wallMs > this.#restoredAt) return this.position;
    return { log: this.#id, sequence: (first ?? this.#ring.first + this.#ring.length) - 1 };
  }

  /** Returns the event with a sequence number. Undefined if it is not retained. */
  get(sequence: number): PodLifecycleEvent | undefined {
    return this.#ring.get(sequence);
  }

  /**
   * The `unavailable` error that explains why the snapshot does not reflect the node yet. Undefined once it
   * does.
   */
  get unknown(): NodekeeperError | undefined {
    const { gate } = this.#options;
    return gate === undefined || gate.isOpen ? undefined : gate.refusal();
  }

  /**
   * Returns the current state of every pod. Throws `unavailable` while it is unknown, so that no consumer
   * sees an empty node.
   */
  snapshot(): readonly Pod[] {
    if (this.unknown) throw this.unknown;
    return this.#options.snapshot();
  }

  /** Resolves once the snapshot reflects the node, without a timeout. Rejects with the signal's reason. */
  async known(signal: AbortSignal): Promise<void> {
    const { gate } = this.#options;
    if (gate && !gate.isOpen) await gate.wait(signal);
  }

  /**
   * Like `known`, but throws `unavailable` with the runtime's problems after a timeout. Callers that serve
   * events or a snapshot must wait here first: until then, the log's ID and the snapshot are not valid.
   */
  async knownSoon(signal: AbortSignal): Promise<void> {
    await this.#options.gate?.waitBriefly(signal);
  }

  /** Called by a reader whose consumer lost events. */
  fellOff(missed: number): void {
    this.#options.onFellOff?.(missed);
  }
}
