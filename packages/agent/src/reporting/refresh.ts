import type { Clock, Timer } from "@nodekeeper/core/lib";
import type { Endpoint } from "./endpoint.ts";

// Messages of one plugin that come closer together than this are read as one: only the last counts.
const REFRESH_MS = 20;
// A plugin that floods with large messages costs about a tenth of the time, however long one takes to read.
const REST_PER_COST = 10;

export interface RefreshOptions {
  clock: Clock;
  /** Takes these endpoints' last messages as their contents. */
  read: (endpoint: Endpoint) => void;
  /** Called with the endpoints that are about to be read; gives what is called when they were. */
  around: (endpoints: ReadonlySet<Endpoint>) => () => void;
}

/** Decides when a plugin's new message is read: soon, but seldom where it is costly. Each plugin pays for itself. */
export class Refresh {
  readonly #options: RefreshOptions;
  readonly #dirty = new Set<Endpoint>();
  // Monotonic: an endpoint whose last message was costly is not read before.
  readonly #notBefore = new Map<Endpoint, number>();
  #lastAt = Number.NEGATIVE_INFINITY;
  #timer: { due: number; timer: Timer } | undefined;

  constructor(options: RefreshOptions) {
    this.#options = options;
  }

  /** The endpoint has a new message. */
  add(endpoint: Endpoint): void {
    this.#dirty.add(endpoint);
    this.#schedule(endpoint);
  }

  forget(endpoint: Endpoint): void {
    this.#dirty.delete(endpoint);
    this.#notBefore.delete(endpoint);
  }

  /** Reads every new message that is not held back. */
  now(): void {
    const { clock } = this.#options;
    this.#read(new Set([...this.#dirty].filter((each) => this.#due(each) <= clock.monotonic())));
  }

  /** Reads all that is left, and ends. */
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
      this.#notBefore.set(endpoint, ended + REST_PER_COST * (ended - began));
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
