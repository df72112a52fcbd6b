import type { Pod } from "../runtime/index.ts";
import type { LogPosition } from "./cursor.ts";
import type { PodLifecycleEvent } from "./events.ts";
import type { LogItem } from "./log-item.ts";

/** A reader as seen by the log, for metrics. */
export interface LogCursor {
  /** Sequence number of the last event delivered to the consumer. */
  readonly sequence: number;
}

/** The log as seen by its readers. */
export interface ReaderHost {
  readonly id: string;
  readonly last: number;
  get(sequence: number): PodLifecycleEvent | undefined;
  snapshot(): readonly Pod[];
  known(signal: AbortSignal): Promise<void>;
  fellOff(missed: number): void;
  /** Counts a reader until it leaves. */
  join(reader: LogCursor): void;
  leave(reader: LogCursor, wake: (() => void) | undefined): void;
  /** Calls `wake` when the next event is appended. */
  whenAppended(wake: () => void): void;
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Iterator over the items for a consumer. */
export interface LogReader extends AsyncIterableIterator<LogItem> {
  /** Returns up to `most` events that follow the last item and are already in the log. Does not wait. */
  takeReady(most: number): LogItem[];
}

/** Iterates over the log for one consumer. Ends without an error when its signal aborts. */
export class EventReader implements LogReader, LogCursor {
  readonly #host: ReaderHost;
  readonly #signal: AbortSignal;
  #sequence: number;
  // Set if the next item must be a snapshot.
  #restart: { why: "begin" | "fellOff"; missed: number | undefined } | undefined;
  #waiting: PromiseWithResolvers<void> | undefined;
  #ended = false;

  constructor(host: ReaderHost, after: LogPosition | undefined, signal: AbortSignal) {
    this.#host = host;
    this.#signal = signal;
    this.#sequence = after?.sequence ?? host.last;
    if (!after) this.#restart = { why: "begin", missed: undefined };
    else if (after.log !== host.id || after.sequence > host.last) {
      this.#sequence = host.last;
      this.#restart = { why: "fellOff", missed: undefined };
      host.fellOff(0);
    }
    this.#ended = signal.aborted;
    if (signal.aborted) return;
    host.join(this);
    signal.addEventListener("abort", this.#end, { once: true });
  }

  get sequence(): number {
    return this.#sequence;
  }

  async next(): Promise<IteratorResult<LogItem, undefined>> {
    while (!this.#ended) {
      if (this.#restart) await this.#untilKnown();
      if (this.#ended) break;
      const value = this.#take();
      if (value) return { done: false, value };
      await this.#appended();
    }
    return DONE;
  }

  takeReady(most: number): LogItem[] {
    const items: LogItem[] = [];
    while (!this.#ended && !this.#restart && items.length < most) {
      const item = this.#take();
      if (item === undefined) break;
      items.push(item);
    }
    return items;
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    this.#end();
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #appended(): Promise<void> {
    this.#waiting ??= Promise.withResolvers();
    const { promise, resolve } = this.#waiting;
    this.#host.whenAppended(resolve);
    await promise;
    if (this.#waiting?.promise === promise) this.#waiting = undefined;
  }

  async #untilKnown(): Promise<void> {
    try {
      await this.#host.known(this.#signal);
    } catch (error) {
      // The signal aborted, or the consumer ended the iteration.
      if (!this.#ended) throw error;
    }
  }

  #take(): LogItem | undefined {
    const host = this.#host;
    if (!this.#restart) {
      if (this.#sequence === host.last) return undefined;
      const event = host.get(this.#sequence + 1);
      if (event) {
        this.#sequence++;
        return { kind: "event", position: { log: host.id, sequence: this.#sequence }, event };
      }
      const missed = host.last - this.#sequence;
      this.#restart = { why: "fellOff", missed };
      host.fellOff(missed);
    }
    const { why, missed } = this.#restart;
    this.#restart = undefined;
    this.#sequence = host.last;
    return {
      kind: "snapshot",
      position: { log: host.id, sequence: host.last },
      why,
      missed,
      pods: host.snapshot(),
    };
  }

  readonly #end = (): void => {
    if (this.#ended) return;
    this.#ended = true;
    this.#signal.removeEventListener("abort", this.#end);
    this.#host.leave(this, this.#waiting?.resolve);
    this.#waiting?.resolve();
  };
}
