import type { DatabaseSync } from "node:sqlite";
import { type BootTime, type Clock, elapsedSince } from "@nodekeeper/core/lib";

/**
 * The clock by which records age, in milliseconds: verified time since the database was created. Each record
 * is stored with the age of the database when it was written. Records are trimmed by the difference, never by
 * the wall clock.
 *
 * 1. While the agent runs, the age advances with the monotonic clock. A step of the wall clock changes
 *    nothing.
 * 2. While no agent runs, the age advances as far as `elapsedSince` verifies. It does not advance across a
 *    reboot.
 * 3. The age never decreases, even across restarts. At most the time since the last `save` is lost.
 */
export class RecordAge {
  readonly #clock: Clock;
  readonly #connection: DatabaseSync;
  readonly #boot: BootTime | undefined;
  readonly #startedAt: number;
  readonly #before: number;

  /** @param boot current boot of the machine; undefined if it is unknown */
  constructor(connection: DatabaseSync, clock: Clock, boot: BootTime | undefined) {
    this.#connection = connection;
    this.#clock = clock;
    this.#boot = boot;
    this.#startedAt = clock.monotonic();
    const stored = connection.prepare("SELECT age, at, boot, uptime FROM record_age").get();
    this.#before = stored === undefined ? 0 : ageOf(stored, clock.now(), boot);
  }

  now(): number {
    return Math.floor(this.#before + this.#clock.monotonic() - this.#startedAt);
  }

  /**
   * Returns when the age was last saved, in milliseconds since the epoch. Undefined before the first save.
   */
  savedAt(): number | undefined {
    return this.#connection.prepare("SELECT at FROM record_age").get()?.at as number | undefined;
  }

  /** Saves the age for the next agent. Must be called in the transaction that writes records. */
  save(): void {
    const uptimeMs =
      this.#boot === undefined
        ? null
        : Math.floor(this.#boot.uptimeMs + this.#clock.monotonic() - this.#startedAt);
    this.#connection
      .prepare("INSERT OR REPLACE INTO record_age (one, age, at, boot, uptime) VALUES (1, ?, ?, ?, ?)")
      .run(this.now(), Math.floor(this.#clock.now()), this.#boot?.id ?? null, uptimeMs);
  }
}

function ageOf(
  { age, at, boot: id, uptime }: Record<string, unknown>,
  now: number,
  boot: BootTime | undefined,
): number {
  const then = id === null ? null : { id: id as string, uptimeMs: uptime as number };
  return (age as number) + elapsedSince({ at: at as number, boot: then }, now, boot);
}
