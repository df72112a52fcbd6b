import { type Clock, completed, type LoopTurns, type Steps, type Timer } from "@nodekeeper/core/lib";
import { type Endpoint, objectsOf } from "./endpoint.ts";
import { sizeOf } from "./report-message.ts";

// Of the messages that a plugin sends within this interval, only the last one is parsed.
const REFRESH_MS = 20;
// Pause after parsing, as a multiple of its duration. Limits a plugin to about a tenth of the CPU time.
const PAUSE_PER_COST = 10;
// Messages up to this size are parsed in one step, up to a total size.
const SMALL_BYTES = 32 * 1024;
const MAX_TOTAL_SMALL_BYTES = 256 * 1024;

export interface RefreshOptions {
  clock: Clock;
  turns: LoopTurns;
  /** Parses an endpoint's last message into its content. */
  read: (endpoint: Endpoint) => Steps<void>;
  /** Called after endpoints were parsed, with the objects (`kindKey`) that they reported before or report now. */
  onChange: (objects: ReadonlySet<string>) => void;
}

/** A large message that is being parsed. */
interface Reading {
  endpoint: Endpoint;
  steps: Steps<void>;
  touched: ReadonlySet<string>;
}

/**
 * Schedules the parsing of plugins' messages: within 20 ms, but less often for plugins whose messages take long. Small
 * messages are parsed in one step, large ones sequentially over several turns of the event loop.
 */
export class Refresh {
  readonly #options: RefreshOptions;
  readonly #dirty = new Set<Endpoint>();
  // Monotonic milliseconds until which each endpoint is paused.
  readonly #notBefore = new Map<Endpoint, number>();
  #lastAt = Number.NEGATIVE_INFINITY;
  #timer: { due: number; timer: Timer } | undefined;
  #reading: Reading | undefined;

  constructor(options: RefreshOptions) {
    this.#options = options;
  }

  /** Schedules an endpoint with a new message. */
  add(endpoint: Endpoint): void {
    this.#dirty.add(endpoint);
    this.#schedule(endpoint);
  }

  forget(endpoint: Endpoint): void {
    this.#dirty.delete(endpoint);
    this.#notBefore.delete(endpoint);
    if (this.#reading?.endpoint !== endpoint) return;
    this.#reading = undefined;
    for (const waiting of this.#dirty) this.#schedule(waiting);
  }

  /** Parses new small messages of endpoints that are not paused. */
  now(): void {
    this.#readSmall(this.#options.clock.monotonic());
  }

  #readSmall(now: number): void {
    let bytes = 0;
    const small = this.#due(now).filter(({ message }) => {
      const size = sizeOf(message!);
      if (size > SMALL_BYTES || bytes + size > MAX_TOTAL_SMALL_BYTES) return false;
      bytes += size;
      return true;
    });
    this.#readAtOnce(small);
  }

  /** Parses all remaining messages and stops. */
  close(): void {
    const reading = this.#reading;
    this.#reading = undefined;
    if (reading) {
      completed(reading.steps);
      this.#report(reading.touched, [reading.endpoint]);
    }
    this.#readAtOnce([...this.#dirty]);
    this.#timer?.timer.cancel();
    this.#timer = undefined;
  }

  #readAtOnce(endpoints: readonly Endpoint[]): void {
    if (endpoints.length === 0) return;
    const { clock, read } = this.#options;
    this.#lastAt = clock.monotonic();
    const touched = objectsOf(endpoints);
    for (const endpoint of endpoints) {
      this.#dirty.delete(endpoint);
      const startedAt = clock.monotonic();
      completed(read(endpoint));
      this.#read(endpoint, clock.monotonic() - startedAt);
    }
    this.#report(touched, endpoints);
  }

  #startReading(endpoint: Endpoint): void {
    const { clock, read } = this.#options;
    this.#lastAt = clock.monotonic();
    this.#dirty.delete(endpoint);
    const reading = { endpoint, steps: read(endpoint), touched: objectsOf([endpoint]) };
    this.#reading = reading;
    void this.#readInTurns(reading);
  }

  async #readInTurns(reading: Reading): Promise<void> {
    const { clock, turns } = this.#options;
    let costMs = 0;
    for (;;) {
      await turns.pass();
      // The endpoint was removed, or `close` parsed the rest.
      if (this.#reading !== reading) return;
      const startedAt = clock.monotonic();
      const { done } = reading.steps.next();
      costMs += clock.monotonic() - startedAt;
      if (done) break;
    }
    this.#reading = undefined;
    this.#read(reading.endpoint, costMs);
    this.#report(reading.touched, [reading.endpoint]);
    this.#fire();
  }

  #report(touched: ReadonlySet<string>, endpoints: readonly Endpoint[]): void {
    this.#options.onChange(new Set([...touched, ...objectsOf(endpoints)]));
  }

  #read(endpoint: Endpoint, costMs: number): void {
    this.#notBefore.set(endpoint, this.#options.clock.monotonic() + PAUSE_PER_COST * costMs);
  }

  #schedule(endpoint: Endpoint): void {
    const { clock } = this.#options;
    const due = Math.max(this.#lastAt + REFRESH_MS, this.#dueAt(endpoint));
    if (this.#timer && this.#timer.due <= due) return;
    this.#timer?.timer.cancel();
    this.#timer = { due, timer: clock.after(Math.max(due - clock.monotonic(), 0), () => this.#fire()) };
  }

  #fire(): void {
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    // A single reading of the clock. With two, an endpoint that becomes due in between would be neither parsed nor
    // scheduled.
    const now = this.#options.clock.monotonic();
    this.#readSmall(now);
    const [next] = this.#due(now);
    if (next && !this.#reading) this.#startReading(next);
    // Endpoints that are already due follow when the current one is done.
    for (const endpoint of this.#dirty) if (this.#dueAt(endpoint) > now) this.#schedule(endpoint);
  }

  // Messages of an endpoint are parsed in order: a newer one waits for the one in progress.
  #due(now: number): Endpoint[] {
    const busy = this.#reading?.endpoint;
    return [...this.#dirty].filter((endpoint) => endpoint !== busy && this.#dueAt(endpoint) <= now);
  }

  #dueAt(endpoint: Endpoint): number {
    return this.#notBefore.get(endpoint) ?? Number.NEGATIVE_INFINITY;
  }
}
