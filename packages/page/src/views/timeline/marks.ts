import type { Mark } from "../../live.ts";
import { type Range, xOf } from "./scale.ts";

export type { Mark } from "../../live.ts";

/** Marks that are too close on the axis to be distinguished. */
export interface MarkGroup {
  /** Pixels from the start of the axis. */
  x: number;
  marks: readonly [Mark, ...Mark[]];
}

export type Tone = "bad" | "warn" | "ok" | "quiet";

/** How a kind of mark is drawn and named. Shapes differ, because not everyone can distinguish colors. */
export interface Look {
  word: string;
  glyph: string;
  tone: Tone;
}

const LOOKS: Record<Mark["kind"], Look> = {
  evictionSelected: { word: "Eviction", glyph: "◆", tone: "bad" },
  agentStartedAfterKill: { word: "Agent restarted after a kill", glyph: "↻", tone: "bad" },
  pluginLost: { word: "Plugin lost", glyph: "✕", tone: "bad" },
  pluginRefused: { word: "Plugin refused", glyph: "⊘", tone: "bad" },
  evictionDryRun: { word: "Eviction only recorded (dry run)", glyph: "◇", tone: "warn" },
  taintAdded: { word: "Taint added", glyph: "▲", tone: "warn" },
  taintChanged: { word: "Taint changed", glyph: "◈", tone: "warn" },
  conditionSet: { word: "Condition set", glyph: "△", tone: "warn" },
  evictionRefused: { word: "Not evicted", glyph: "⊖", tone: "warn" },
  roundsPaused: { word: "No rounds", glyph: "‖", tone: "warn" },
  evictionWithdrawn: { word: "Eviction withdrawn", glyph: "↩", tone: "quiet" },
  evictionEnded: { word: "Eviction ended", glyph: "●", tone: "quiet" },
  taintRemoved: { word: "Taint removed", glyph: "▼", tone: "ok" },
  conditionCleared: { word: "Condition cleared", glyph: "▽", tone: "ok" },
  pluginRegistered: { word: "Plugin registered", glyph: "+", tone: "ok" },
  agentStarted: { word: "Agent started", glyph: "↻", tone: "quiet" },
  agentStopped: { word: "Agent stopped", glyph: "□", tone: "quiet" },
};
const OTHER: Look = { word: "Event", glyph: "•", tone: "quiet" };
const KINDS: readonly string[] = Object.keys(LOOKS);

/** Returns the look of a kind. Unknown kinds of newer agents are shown as events. */
export function lookOf(kind: string): Look {
  return (Object.hasOwn(LOOKS, kind) && LOOKS[kind as Mark["kind"]]) || OTHER;
}

/** Returns the most severe mark of a group, by which the group is drawn. */
export function gravest(marks: readonly [Mark, ...Mark[]]): Mark {
  const rank = ({ kind }: Mark) => (KINDS.indexOf(kind) + KINDS.length + 1) % (KINDS.length + 1);
  return marks.reduce((found, mark) => (rank(mark) < rank(found) ? mark : found));
}

/** Groups marks in the range that are closer than `leastPx`, from left to right. `marks` are oldest first. */
export function groupMarks(marks: readonly Mark[], range: Range, px: number, leastPx: number): MarkGroup[] {
  const groups: { x: number; marks: [Mark, ...Mark[]] }[] = [];
  for (const mark of marks) {
    if (mark.at < range.from || mark.at > range.to) continue;
    const x = xOf(mark.at, range, px);
    const last = groups.at(-1);
    if (last && x - last.x < leastPx) last.marks.push(mark);
    else groups.push({ x, marks: [mark] });
  }
  return groups;
}

/** Returns the first mark after a time, or the last one before it. Marks are oldest first. */
export function neighbourOf(marks: readonly Mark[], at: number, direction: 1 | -1): Mark | undefined {
  return direction > 0 ? marks.find((mark) => mark.at > at) : marks.findLast((mark) => mark.at < at);
}

/** Merges marks, deduplicated by id, oldest first. */
export function mergeMarks(known: readonly Mark[], added: readonly Mark[]): Mark[] {
  const byId = new Map([...known, ...added].map((mark) => [mark.id, mark]));
  return [...byId.values()].sort((a, b) => a.at - b.at || a.id - b.id);
}
