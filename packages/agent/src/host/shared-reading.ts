import { type Clock, SharedWork } from "@nodekeeper/core/lib";
import type { Reading } from "./reading.ts";

/**
 * One source, read once for all who ask within its period. Failures are kept as long as values: a source that hangs is
 * not asked again by each. The look itself has its own deadline; a caller that aborts stops waiting alone.
 */
export class SharedReading<T> {
  readonly #clock: Clock;
  readonly #maxAgeMs: () => number;
  readonly #work: SharedWork<Reading<T>>;
  #last: { reading: Reading<T>; startedAt: number } | undefined;

  /** @param maxAgeMs how old a reading may be that is handed out again, milliseconds */
  constructor(clock: Clock, maxAgeMs: () => number, read: () => Promise<Reading<T>>) {
    this.#clock = clock;
    this.#maxAgeMs = maxAgeMs;
    this.#work = new SharedWork(() => this.#start(read), { outlivesCallers: true });
  }

  /** Throws nothing but the signal's reason. */
  async get(signal: AbortSignal): Promise<Reading<T>> {
    signal.throwIfAborted();
    if (this.#last && this.#clock.monotonic() - this.#last.startedAt <= this.#maxAgeMs()) {
      return this.#last.reading;
    }
    return await this.#work.join(signal);
  }

  /** Forgets the last reading: the next who asks has the source read again. */
  expire(): void {
    this.#last = undefined;
  }

  async #start(read: () => Promise<Reading<T>>): Promise<Reading<T>> {
    const startedAt = this.#clock.monotonic();
    const reading = await read();
    this.#last = { reading, startedAt };
    return reading;
  }
}

/** Shared readings of one kind by key, such as file systems by path; the one not asked for longest goes first. */
export class SharedReadings<T> {
  readonly #limit: number;
  readonly #make: (key: string) => SharedReading<T>;
  readonly #byKey = new Map<string, SharedReading<T>>();

  constructor(limit: number, make: (key: string) => SharedReading<T>) {
    this.#limit = limit;
    this.#make = make;
  }

  get(key: string, signal: AbortSignal): Promise<Reading<T>> {
    const shared = this.#byKey.get(key) ?? this.#make(key);
    this.#byKey.delete(key);
    this.#byKey.set(key, shared);
    if (this.#byKey.size > this.#limit) this.#byKey.delete(this.#byKey.keys().next().value!);
    return shared.get(signal);
  }

  expire(): void {
    for (const shared of this.#byKey.values()) shared.expire();
  }
}
