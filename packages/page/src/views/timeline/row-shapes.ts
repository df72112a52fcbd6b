import { type Bar, type BarEnd, endOf } from "./bars.ts";
import { lookOf, type Mark, type Tone } from "./marks.ts";
import type { Row } from "./rows.ts";
import { type Range, xOf } from "./scale.ts";

/** Input for drawing the rows on a canvas. Lengths are CSS pixels. */
export interface RowsPicture {
  /** The rows to draw, and where the first starts. */
  rows: readonly Row[];
  top: number;
  rowHeight: number;
  /** Height of the label above the bars in a row. */
  labelPx: number;
  range: Range;
  axisPx: number;
  /** The time up to which events are known. Running containers are drawn up to here. */
  now: number;
  /** Since when events are known. Bars with an unknown start are drawn from here. */
  knownSince: number;
  /** Marks of pods, by UID. */
  marks: ReadonlyMap<string, readonly Mark[]>;
  /** The id of the selected container. */
  selected: string | undefined;
}

/** A rectangle: left, top, width, height. */
export type Box = readonly [number, number, number, number];

/** A sign and its center. */
export interface Sign {
  glyph: string;
  tone: Tone;
  x: number;
  y: number;
}

/** A text that ends at `x` and is at most `room` wide. */
export interface Label {
  text: string;
  x: number;
  y: number;
  room: number;
}

/** Shapes to draw; later ones of a kind cover earlier ones. */
export interface RowShapes {
  bars: Record<BarTone, Box[]>;
  sandboxes: Box[];
  starts: Box[];
  selected: Box | undefined;
  /** How bars ended. */
  labels: Label[];
  signs: Sign[];
}

export type BarTone = "line" | "quiet" | "bad";

const LEAST_BAR_PX = 2;
const SIGN_PX = 9;
// Narrower bars have no text.
const LEAST_LABEL_PX = 20;
const SIGNS: Record<BarEnd, [glyph: string, tone: Tone] | undefined> = {
  running: undefined,
  completed: undefined,
  stopped: ["■", "quiet"],
  failed: ["✕", "bad"],
  oom: ["▲", "bad"],
  unknown: ["?", "quiet"],
};

/**
 * Returns the shapes of the rows: containers as bars, sandboxes as thin bars below, how they ended, and marks of their
 * pods.
 */
export function shapesOf(picture: RowsPicture): RowShapes {
  const shapes: RowShapes = {
    bars: { line: [], quiet: [], bad: [] },
    sandboxes: [],
    starts: [],
    selected: undefined,
    labels: [],
    signs: [],
  };
  for (const [index, row] of picture.rows.entries())
    addRow(shapes, row, picture.top + index * picture.rowHeight, picture);
  return shapes;
}

function addRow(shapes: RowShapes, row: Row, y: number, picture: RowsPicture): void {
  const { rowHeight, labelPx, range, axisPx, marks } = picture;
  const isPod = row.container === undefined;
  const room = rowHeight - labelPx;
  const top = y + labelPx + Math.round(room * 0.2);
  const height = Math.round(room * (isPod ? 0.5 : 0.6));
  const lanes = lanesOf(row, top, height);
  for (const bar of row.bars) {
    const lane = lanes.get(bar.name);
    if (bar.kind === "container" && lane) addBar(shapes, bar, lane, picture);
    else addSandbox(shapes, bar, y + rowHeight - 5, picture);
  }
  if (!isPod) return;
  // The first is on top: the eviction covers its end.
  for (const mark of marks.get(row.pod.uid)?.toReversed() ?? []) {
    const x = xOf(mark.at, range, axisPx);
    const { glyph, tone } = lookOf(mark.kind);
    if (x >= 0 && x <= axisPx) shapes.signs.push({ glyph, tone, x, y: top + height / 2 });
  }
}

/** The part of a row's height for the containers of one name, and how far it has been drawn. */
interface Lane {
  top: number;
  height: number;
  hasLabels: boolean;
  drawnTo: number;
  lastStart: number;
  lastSign: number;
}

// More would be too thin to see. The remaining containers share the last lane.
const MOST_LANES = 4;

// Containers of a pod run concurrently: one that fails must not be covered by another.
function lanesOf({ bars }: Row, top: number, height: number): Map<string, Lane> {
  const names = [...new Set(bars.filter(({ kind }) => kind === "container").map(({ name }) => name))];
  const count = Math.min(names.length, MOST_LANES);
  const step = height / Math.max(count, 1);
  const lanes = Array.from({ length: count }, (_, index): Lane => {
    const none = Number.NEGATIVE_INFINITY;
    const thickness = count === 1 ? height : Math.max(Math.floor(step) - 1, 2);
    return {
      ...{ top: top + Math.round(index * step), height: thickness, hasLabels: count === 1 },
      ...{ drawnTo: none, lastStart: none, lastSign: none },
    };
  });
  return new Map(names.map((name, index) => [name, lanes[Math.min(index, count - 1)]!]));
}

function addSandbox(shapes: RowShapes, bar: Bar, y: number, picture: RowsPicture): void {
  const [from, to] = extentOf(bar, picture);
  if (to >= 0 && from <= picture.axisPx) shapes.sandboxes.push([from, y, to - from, 2]);
}

// Of potentially thousands of bars on the same pixel, one is drawn.
function addBar(shapes: RowShapes, bar: Bar, lane: Lane, picture: RowsPicture): void {
  const { axisPx, selected } = picture;
  const { top, height } = lane;
  const [from, to] = extentOf(bar, picture);
  if (to < 0 || from > axisPx) return;
  const end = endOf(bar);
  if (bar.id === selected) shapes.selected = [from, top - 1, to - from, height + 2];
  if (to > lane.drawnTo + 0.5) {
    shapes.bars[toneOf(end)].push([from, top, to - from, height]);
    lane.drawnTo = to;
  }
  // A start is drawn as an edge, so that restarts are visible in a row of bars.
  if (bar.from !== undefined && from >= lane.lastStart + 2) {
    shapes.starts.push([from, top - 2, 1, height + 2]);
    lane.lastStart = from;
  }
  if (end === "running" || to > axisPx) return;
  const middle = top + height / 2;
  const room = to - Math.max(from, 0) - 2 * SIGN_PX;
  if (lane.hasLabels && room > LEAST_LABEL_PX)
    shapes.labels.push({ text: endLabel(bar), x: to - SIGN_PX, y: middle, room });
  const sign = SIGNS[end];
  if (!sign || to < lane.lastSign + SIGN_PX) return;
  shapes.signs.push({ glyph: sign[0], tone: sign[1], x: to, y: middle });
  lane.lastSign = to;
}

// Clipped at the edges, because canvases do not handle very large numbers.
function extentOf({ from, to }: Bar, { range, axisPx, now, knownSince }: RowsPicture): [number, number] {
  const start = xOf(from ?? Math.max(knownSince, range.from), range, axisPx);
  const end = xOf(to ?? Math.max(now, from ?? 0), range, axisPx);
  return [Math.max(start, -20), Math.min(Math.max(end, start + LEAST_BAR_PX), axisPx + 20)];
}

function toneOf(end: BarEnd): BarTone {
  if (end === "running") return "line";
  return end === "failed" || end === "oom" ? "bad" : "quiet";
}

/** "OOMKilled", "exit 1", "exit 0". */
export function endLabel({ to, reason, exitCode }: Bar): string {
  if (to === undefined) return "";
  if (reason === "OOMKilled") return reason;
  return exitCode === undefined ? "exit unknown" : `exit ${exitCode}`;
}
