import type { DatabaseSync } from "node:sqlite";
import { type BootTime, type Clock, elapsedSince } from "@nodekeeper/core/lib";

/**
 * The time by which records age, milliseconds: verified time since the database was created. Each record is stored with
 * the age of the database when it was written; records are trimmed by the difference, never by wall times.
 *
 * 1. While the agent runs it advances with the monotonic clock: a step of the wall clock changes nothing.
 * 2. While no agent runs it advances as `elapsedSince` verifies, by nothing across a reboot.
 * 3. It never decreases, also across restarts: at most what passed since the last `save` is lost.
 */
export class RecordAge {
  readonly #clock: Clock;
  readonly #connection: DatabaseSync;
  readonly #boot: BootTime | undefined;
  readonly #startedAt: number;
  readonly #before: number;

  /** @param boot of the machine, now; undefined if it is not known */
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

  /** When it was last stored, wall milliseconds; undefined before the first time. */
  savedAt(): number | undefined {
    return this.#connection.prepare("SELECT at FROM record_age").get()?.at as number | undefined;
  }

  /** Stores it, for the next agent. Call it in the transaction that writes records. */
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
