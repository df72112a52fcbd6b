import type { NodekeeperError } from "@nodekeeper/core/lib";

/**
 * One look at the machine. What the machine does not have is an answer of its own (`missing`), never a zero;
 * what could not be read has the reason (`failed`), and so does what was read too long ago (`stale`).
 */
export type Reading<T> =
  | {
      state: "read";
      /** Monotonic milliseconds, so that a step of the wall clock makes no reading stale, and no old one fresh. */
      at: number;
      value: T;
      /** Parts that could not be read and are therefore absent from `value`. */
      problems: readonly NodekeeperError[];
    }
  | { state: "missing"; at: number; message: string }
  | { state: "stale"; at: number; message: string }
  | { state: "failed"; at: number; error: NodekeeperError };

/** The value of a reading, or undefined where there is none. */
export function readingValue<T>(reading: Reading<T>): T | undefined {
  return reading.state === "read" ? reading.value : undefined;
}

/** Why a reading has no value, in words; undefined where it has one. */
export function readingProblem(reading: Reading<unknown>): string | undefined {
  if (reading.state === "read") return undefined;
  return reading.state === "failed" ? reading.error.message : reading.message;
}

/** The reading as it may be used now: `stale` where it is older than `maxAgeMs`. @param now monotonic milliseconds */
export function freshReading<T>(reading: Reading<T>, now: number, maxAgeMs: number): Reading<T> {
  const ageMs = now - reading.at;
  if (reading.state !== "read" || ageMs <= maxAgeMs) return reading;
  return { state: "stale", at: reading.at, message: `read ${ageMs} ms ago, more than ${maxAgeMs} ms` };
}

/** The same reading with its value turned into another; undefined makes it `missing` with this message. */
export function mapReading<T, U>(
  reading: Reading<T>,
  turn: (value: T) => U | undefined,
  missing: string,
): Reading<U> {
  if (reading.state !== "read") return reading;
  const value = turn(reading.value);
  if (value === undefined) return { state: "missing", at: reading.at, message: missing };
  return { ...reading, value };
}
