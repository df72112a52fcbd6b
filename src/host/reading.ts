import type { NodekeeperError } from "../lib/index.ts";

/**
 * One look at the machine. What the machine does not have is an answer of its own (`missing`), never a zero;
 * what could not be read says why (`failed`).
 */
export type Reading<T> =
  | {
      state: "read";
      /** Wall time, milliseconds since the epoch. */
      at: number;
      value: T;
      /** Parts that could not be read and are therefore absent from `value`. */
      problems: readonly NodekeeperError[];
    }
  | { state: "missing"; at: number; message: string }
  | { state: "failed"; at: number; error: NodekeeperError };

/** The value of a reading, or undefined where there is none. */
export function readingValue<T>(reading: Reading<T>): T | undefined {
  return reading.state === "read" ? reading.value : undefined;
}
