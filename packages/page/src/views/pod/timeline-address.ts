import { addressOf } from "../../address.ts";

const AROUND_MS = 2 * 60_000;

/** The timeline around what happened, from the first to the last of these times with two minutes before and after. */
export function timelineAddress(times: readonly number[]): string | undefined {
  if (times.length === 0) return undefined;
  const [from, to] = [Math.min(...times), Math.max(...times)].map(Math.round) as [number, number];
  return addressOf("timeline", [], { from: from - AROUND_MS, to: to + AROUND_MS });
}
