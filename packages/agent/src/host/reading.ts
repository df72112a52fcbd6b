import { type Clock, type NodekeeperError, toNodekeeperError, withDeadline } from "@nodekeeper/core/lib";
import type { HostFiles } from "./host-files.ts";
import { Probe } from "./probe.ts";

/**
 * Result of one reading of the host. `missing`: the machine does not report the value, which is never 0 instead.
 * `failed`: it could not be read. `stale`: it was read too long ago.
 */
export type Reading<T> =
  | {
      state: "read";
      /** Monotonic milliseconds, so that steps of the wall clock do not affect a reading's age. */
      at: number;
      value: T;
      /** Parts that could not be read and are therefore absent from `value`. */
      problems: readonly NodekeeperError[];
    }
  | { state: "missing" | "stale"; at: number; message: string }
  | { state: "failed"; at: number; error: NodekeeperError };

const DEADLINE_MS = 5_000;

export interface ReadingContext {
  files: HostFiles;
  clock: Clock;
}

/** Takes a reading within its deadline. Throws only the signal's reason. @param what name of the reading in messages */
export async function takeReading<T>(
  { files, clock }: ReadingContext,
  what: string,
  work: (probe: Probe, signal: AbortSignal) => Promise<T | undefined>,
  signal?: AbortSignal,
): Promise<Reading<T>> {
  const at = clock.monotonic();
  let problems: readonly NodekeeperError[] = [];
  try {
    const value = await withDeadline(
      clock,
      { ms: DEADLINE_MS, name: `reading ${what}` },
      signal,
      (scoped) => {
        const probe = new Probe(files, scoped);
        problems = probe.problems;
        return work(probe, scoped);
      },
    );
    if (value !== undefined) return { state: "read", at, value, problems };
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    return { state: "failed", at, error: toNodekeeperError(error) };
  }
  const [problem] = problems;
  if (problem) return { state: "failed", at, error: problem };
  return {
    state: "missing",
    at,
    message: `${what}: the machine at ${files.place("") || "/"} does not report it`,
  };
}

/** Returns the value of a reading; undefined if it has none. */
export function readingValue<T>(reading: Reading<T>): T | undefined {
  return reading.state === "read" ? reading.value : undefined;
}

/** Returns the reason why a reading has no value, for messages; undefined if it has one. */
export function readingProblem(reading: Reading<unknown>): string | undefined {
  if (reading.state === "read") return undefined;
  return reading.state === "failed" ? reading.error.message : reading.message;
}

/** Returns the reading, or `stale` if it is older than `maxAgeMs`. @param now monotonic milliseconds */
export function freshReading<T>(reading: Reading<T>, now: number, maxAgeMs: number): Reading<T> {
  const ageMs = now - reading.at;
  if (reading.state !== "read" || ageMs <= maxAgeMs) return reading;
  return { state: "stale", at: reading.at, message: `read ${ageMs} ms ago, more than ${maxAgeMs} ms` };
}

/**
 * Returns the reading with its value converted. If `turn` returns undefined, the result is `missing` with this message.
 */
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
