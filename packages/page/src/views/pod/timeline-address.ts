import { placeAddress } from "../timeline/place.ts";
import { WIDEST_MS } from "../timeline/scale.ts";

const AROUND_MS = 2 * 60_000;

/**
 * The timeline around what happened, from the first to the last of these times with two minutes before and after; of more than
 * the timeline shows at once, the end.
 */
export function timelineAddress(times: readonly number[]): string | undefined {
  if (times.length === 0) return undefined;
  const [from, to] = [Math.min(...times), Math.max(...times)].map(Math.round) as [number, number];
  const end = to + AROUND_MS;
  const range = { from: Math.max(from - AROUND_MS, end - WIDEST_MS), to: end };
  return placeAddress({ range, selection: undefined });
}
