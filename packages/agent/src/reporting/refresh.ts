import type { Clock, Timer } from "@nodekeeper/core/lib";
import type { Endpoint } from "./endpoint.ts";

// Of the messages that a plugin sends within this interval, only the last one is parsed.
const REFRESH_MS = 20;
// Pause after parsing a message, as a multiple of the time it took: limits a plugin to about a tenth of the CPU time.
const PAUSE_PER_COST = 10;

export interface RefreshOptions {
  clock: Clock;
  /** Parses an endpoint's last message into its content. */
  read: (endpoint: Endpoint) => void;
  /** Called with the endpoints that are about to be parsed. The returned function is called afterwards. */
  around: (endpoints: ReadonlySet<Endpoint>) => () => void;
}

/** Schedules the parsing of plugins' messages: within 20 ms, but less often for plugins whose messages take long. */
export class Refresh {
  readonly #options: RefreshOptions;
  readonly #dirty = new Set<Endpoint>();
  // Monotonic time before which an endpoint is not parsed again.
  readonly #notBefore = new Map<Endpoint, number>();
  #lastAt = Number.NEGATIVE_INFINITY;
  #timer: { due: number; timer: Timer } | undefined;

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
  }

  /** Parses every new message whose endpoint is not paused. */
  now(): void {
    const { clock } = this.#options;
    this.#read(new Set([...this.#dirty].filter((each) => this.#due(each) <= clock.monotonic())));
  }

  /** Parses all remaining messages and stops. */
  close(): void {
    this.#read(new Set(this.#dirty));
    this.#timer?.timer.cancel();
    this.#timer = undefined;
  }

  #read(endpoints: ReadonlySet<Endpoint>): void {
    if (endpoints.size === 0) return;
    const { clock, read, around } = this.#options;
    this.#lastAt = clock.monotonic();
    const done = around(endpoints);
    for (const endpoint of endpoints) {
      const began = clock.monotonic();
      read(endpoint);
      const ended = clock.monotonic();
      this.#notBefore.set(endpoint, ended + PAUSE_PER_COST * (ended - began));
      this.#dirty.delete(endpoint);
    }
    done();
  }

  #schedule(endpoint: Endpoint): void {
    const { clock } = this.#options;
    const due = Math.max(this.#lastAt + REFRESH_MS, this.#due(endpoint));
    if (this.#timer && this.#timer.due <= due) return;
    this.#timer?.timer.cancel();
    this.#timer = { due, timer: clock.after(Math.max(due - clock.monotonic(), 0), () => this.#fire()) };
  }

  #fire(): void {
    this.#timer = undefined;
    this.now();
    for (const endpoint of this.#dirty) this.#schedule(endpoint);
  }

  #due(endpoint: Endpoint): number {
    return this.#notBefore.get(endpoint) ?? Number.NEGATIVE_INFINITY;
  }
}
