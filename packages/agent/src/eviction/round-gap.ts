import { elapsedSince } from "@nodekeeper/core/lib";
import type { NewMark } from "../state/index.ts";
import type { EvictionState } from "./decide/state.ts";
import { age } from "./wording/text.ts";

// A round that waits for plugins, or one that failed, leaves shorter ones.
const SHORTEST_GAP_MS = 60_000;
const LONGEST_PERIODS = 3;

/** When a round was decided, and the period of rounds that was in force then, milliseconds. */
export interface RoundTime extends Pick<EvictionState, "boot"> {
  /** Wall milliseconds. */
  at: number;
  periodMs: number;
}

/**
 * The mark of a gap in which no round ran, between the last round of this agent and one that is decided now. Undefined where
 * the gap is three periods or a minute at most by the wall clock, or by the machine's uptime, which includes sleep:
 * neither a clock that is set nor a slow round is a gap. Of a period that was changed in between, the longer one counts.
 * @param trouble why rounds were skipped or failed; undefined where none was due
 */
export function gapMark(before: RoundTime, now: RoundTime, trouble: string | undefined): NewMark | undefined {
  const gapMs = elapsedSince(before, now.at, now.boot ?? undefined);
  const periodMs = Math.max(before.periodMs, now.periodMs);
  if (gapMs <= Math.max(SHORTEST_GAP_MS, LONGEST_PERIODS * periodMs)) return undefined;
  const why = trouble ?? "the machine slept, or the agent was frozen";
  const title = `no round of eviction for ${age(gapMs)}: ${why}`;
  return { kind: "roundsPaused", title, unobservedSince: Math.max(Math.floor(now.at - gapMs), 0) };
}
