import { age, at as timeText } from "../../text.ts";
import type { Mark } from "./marks.ts";
import type { Range } from "./scale.ts";

/** A period in which the node was not observed. An empty timeline there does not mean that nothing happened. */
export interface Gap extends Range {
  kind: "stopped" | "killed" | "paused";
}

/**
 * Returns the gaps that overlap a range, oldest first. Each ends with a mark for a start of the agent or for a round
 * after a pause.
 */
export function gapsOf(marks: readonly Mark[], range: Range): Gap[] {
  return marks.flatMap(({ kind, at, unobservedSince }) => {
    if (unobservedSince === undefined || unobservedSince > range.to || at < range.from) return [];
    return [{ from: unobservedSince, to: at, kind: kindOf(kind) }];
  });
}

function kindOf(kind: Mark["kind"]): Gap["kind"] {
  if (kind === "roundsPaused") return "paused";
  return kind === "agentStartedAfterKill" ? "killed" : "stopped";
}

/** Returns a label for the band. */
export function gapWord({ kind }: Gap): string {
  return kind === "paused" ? "No rounds" : "Agent down";
}

/** "Agent down for 5 min, …: nothing was observed", for screen readers and the list. */
export function gapText(gap: Gap): string {
  const { kind, from, to } = gap;
  const since =
    kind === "killed"
      ? `last sign of life ${timeText(from)}, started again ${timeText(to)}`
      : `${timeText(from)} to ${timeText(to)}`;
  const known = kind === "paused" ? "no threshold was checked" : "nothing was observed";
  return `${gapWord(gap)} for ${age(to - from)}, ${since}: ${known}`;
}
