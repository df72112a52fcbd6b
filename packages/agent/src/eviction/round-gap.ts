import type { EvictionState } from "@nodekeeper/api/decide";
import { age } from "@nodekeeper/api/wording";
import { elapsedSince } from "@nodekeeper/core/lib";
import type { NewMark } from "../state/index.ts";

// Shorter gaps are normal: a round that waits for plugins or fails causes them.
const SHORTEST_GAP_MS = 60_000;
const LONGEST_PERIODS = 3;

/** The time of a round, and the round period in force at that time, milliseconds. */
export interface RoundTime extends Pick<EvictionState, "boot"> {
  /** Wall milliseconds. */
  at: number;
  periodMs: number;
}

/**
 * Returns the mark of a gap in which no round ran, between the last round of this process and the current one.
 * Undefined if the gap, by wall clock or by the machine's uptime (which includes sleep), is at most three periods or
 * one minute, whichever is longer. Neither a stepped clock nor a slow round is a gap. If the period changed in between,
 * the longer one counts.
 * @param trouble why the last round was skipped or failed; undefined if it completed
 */
export function gapMark(before: RoundTime, now: RoundTime, trouble: string | undefined): NewMark | undefined {
  const gapMs = elapsedSince(before, now.at, now.boot ?? undefined);
  const periodMs = Math.max(before.periodMs, now.periodMs);
  if (gapMs <= Math.max(SHORTEST_GAP_MS, LONGEST_PERIODS * periodMs)) return undefined;
  const why = trouble ?? "the machine slept, or the agent was frozen";
  const title = `no round of eviction for ${age(gapMs)}: ${why}`;
  return { kind: "roundsPaused", title, unobservedSince: Math.max(Math.floor(now.at - gapMs), 0) };
}
