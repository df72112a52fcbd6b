import { age, at as timeText } from "../../text.ts";
import type { Mark } from "./marks.ts";
import type { Range } from "./scale.ts";

/** A time in which the node was not observed: an empty timeline there does not show that nothing happened. */
export interface Gap extends Range {
  kind: "stopped" | "killed" | "paused";
}

/** The gaps that reach into a range, oldest first: each ends with a mark of a start of the agent, or of a round after a pause. */
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

const WORDS: Readonly<Record<Gap["kind"], string>> = {
  stopped: "Agent down",
  killed: "Agent down",
  paused: "No rounds",
};

/** A word or two, for the band itself. */
export function gapWord({ kind }: Gap): string {
  return WORDS[kind];
}

/** "Agent down for 5 min, …: nothing was observed": what a screen reader reads, and the list has. */
export function gapText(gap: Gap): string {
  const { kind, from, to } = gap;
  const since =
    kind === "killed"
      ? `last sign of life ${timeText(from)}, started again ${timeText(to)}`
      : `${timeText(from)} to ${timeText(to)}`;
  const known = kind === "paused" ? "no threshold was checked" : "nothing was observed";
  return `${gapWord(gap)} for ${age(to - from)}, ${since}: ${known}`;
}
