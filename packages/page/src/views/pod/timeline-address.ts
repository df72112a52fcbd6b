import { placeAddress } from "../timeline/place.ts";
import { WIDEST_MS } from "../timeline/scale.ts";

const AROUND_MS = 2 * 60_000;

/**
 * Returns the address of the timeline from the first to the last of these times, with a margin of two minutes. If the
 * range is too wide for the timeline, its end is shown.
 */
export function timelineAddress(times: readonly number[]): string | undefined {
  if (times.length === 0) return undefined;
  const [from, to] = [Math.min(...times), Math.max(...times)].map(Math.round) as [number, number];
  const end = to + AROUND_MS;
  const range = { from: Math.max(from - AROUND_MS, end - WIDEST_MS), to: end };
  return placeAddress({ range, selection: undefined });
}
