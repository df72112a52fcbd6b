import { type Bar, type BarEnd, endOf } from "./bars.ts";
import type { Colours } from "./colours.ts";
import { lookOf, type Mark } from "./marks.ts";
import type { Row } from "./rows.ts";
import { type Range, xOf } from "./scale.ts";

/** What the canvas of the rows is drawn from. Lengths are CSS pixels. */
export interface RowsPicture {
  /** The rows to be drawn, and where the first begins. */
  rows: readonly Row[];
  top: number;
  rowHeight: number;
  /** How much of a row's height its label has, above the bars. */
  labelPx: number;
  range: Range;
  /** Where the time axis begins and how long it is. */
  left: number;
  axisPx: number;
  height: number;
  ticks: readonly { at: number }[];
  /** Until when running containers are drawn: the time up to which is known what happened. */
  now: number;
  /** Since when events are known: before it nothing is drawn as running. */
  knownSince: number;
  /** Marks of pods, by UID. */
  marks: ReadonlyMap<string, readonly Mark[]>;
  /** The id of the selected container. */
  selected: string | undefined;
  colours: Colours;
}

const LEAST_BAR_PX = 2;
const GLYPH_PX = 9;
const FONT = "11px system-ui, sans-serif";

/** Draws the rows: containers as bars, sandboxes as thin bars below them, how they ended, and marks of their pods. */
export function drawRows(canvas: CanvasRenderingContext2D, picture: RowsPicture): void {
  const { rows, top, rowHeight, left, axisPx, height, range, ticks, colours } = picture;
  canvas.clearRect(0, 0, left + axisPx, height);
  canvas.save();
  canvas.beginPath();
  canvas.rect(left, 0, axisPx, height);
  canvas.clip();
  canvas.translate(left, 0);
  drawUnknown(canvas, picture);
  canvas.fillStyle = colours.edge;
  for (const { at } of ticks) canvas.fillRect(Math.round(xOf(at, range, axisPx)), 0, 0.5, height);
  for (const [index, row] of rows.entries()) {
    const y = top + index * rowHeight;
    canvas.fillStyle = colours.edge;
    canvas.fillRect(0, y + rowHeight - 0.5, axisPx, 0.5);
    drawRow(canvas, row, y, picture);
  }
  canvas.restore();
}

// Before the log starts, and where it has not been read: nothing is known, which is not the same as nothing happened.
function drawUnknown(
  canvas: CanvasRenderingContext2D,
  { knownSince, range, axisPx, height, colours }: RowsPicture,
): void {
  const end = Math.min(xOf(knownSince, range, axisPx), axisPx);
  if (end <= 0) return;
  canvas.fillStyle = colours.raised;
  canvas.fillRect(0, 0, end, height);
  canvas.strokeStyle = colours.quiet;
  canvas.setLineDash([3, 3]);
  canvas.beginPath();
  canvas.moveTo(end, 0);
  canvas.lineTo(end, height);
  canvas.stroke();
  canvas.setLineDash([]);
}

function drawRow(canvas: CanvasRenderingContext2D, row: Row, y: number, picture: RowsPicture): void {
  const { rowHeight, labelPx, range, axisPx, marks } = picture;
  const isPod = row.container === undefined;
  const room = rowHeight - labelPx;
  const barTop = y + labelPx + Math.round(room * 0.2);
  const barHeight = Math.round(room * (isPod ? 0.46 : 0.6));
  // Bars that end in the same pixel are one to the eye: of thousands, few are drawn.
  let drawnTo = Number.NEGATIVE_INFINITY;
  const ends: { bar: Bar; x: number; from: number }[] = [];
  for (const bar of row.bars) {
    const [from, to] = extentOf(bar, picture);
    if (to < 0 || from > axisPx) continue;
    if (bar.kind === "sandbox") {
      fillBar(canvas, from, to, y + rowHeight - 5, 2, picture.colours.quiet);
      continue;
    }
    const isSelected = bar.id === picture.selected;
    if (to > drawnTo + 0.5 || isSelected) drawBar(canvas, bar, [from, to, barTop, barHeight], picture);
    drawnTo = Math.max(drawnTo, to);
    if (bar.to !== undefined) ends.push({ bar, x: to, from });
  }
  drawEnds(canvas, ends, barTop + barHeight / 2, picture);
  if (!isPod) return;
  // The first on top: an eviction rather than its end.
  for (const mark of marks.get(row.pod.uid)?.toReversed() ?? []) {
    const x = xOf(mark.at, range, axisPx);
    const { glyph, tone } = lookOf(mark.kind);
    if (x >= 0 && x <= axisPx)
      drawGlyph(canvas, glyph, x, barTop + barHeight / 2, picture.colours[tone], picture, 14);
  }
}

function extentOf({ from, to }: Bar, { range, axisPx, now, knownSince }: RowsPicture): [number, number] {
  const start = xOf(from ?? Math.max(knownSince, range.from), range, axisPx);
  const end = xOf(to ?? Math.max(now, from ?? 0), range, axisPx);
  return [Math.max(start, -20), Math.min(Math.max(end, start + LEAST_BAR_PX), axisPx + 20)];
}

type Box = [from: number, to: number, top: number, height: number];

function drawBar(
  canvas: CanvasRenderingContext2D,
  bar: Bar,
  [from, to, top, height]: Box,
  picture: RowsPicture,
): void {
  const { colours } = picture;
  const end = endOf(bar);
  const isBad = end === "failed" || end === "oom";
  canvas.globalAlpha = end === "running" ? 0.85 : 0.5;
  fillBar(
    canvas,
    from,
    to,
    top,
    height,
    isBad ? colours.bad : end === "running" ? colours.line : colours.quiet,
  );
  canvas.globalAlpha = 1;
  // A start is an edge, so that restarts are seen in a row of bars.
  if (bar.from !== undefined) fillBar(canvas, from, from + 1, top - 2, height + 2, colours.text);
  if (bar.id !== picture.selected) return;
  canvas.strokeStyle = colours.text;
  canvas.lineWidth = 2;
  canvas.strokeRect(from, top - 1, Math.max(to - from, 3), height + 2);
  canvas.lineWidth = 1;
}

// Rounded to device pixels by the caller's scale; a bar is never narrower than it can be seen.
function fillBar(
  canvas: CanvasRenderingContext2D,
  from: number,
  to: number,
  top: number,
  height: number,
  colour: string,
): void {
  canvas.fillStyle = colour;
  canvas.fillRect(from, top, Math.max(to - from, 1), height);
}

const GLYPHS: Record<BarEnd, string> = {
  running: "",
  completed: "",
  stopped: "■",
  failed: "✕",
  oom: "▲",
  unknown: "?",
};

function drawEnds(
  canvas: CanvasRenderingContext2D,
  ends: readonly { bar: Bar; x: number; from: number }[],
  y: number,
  picture: RowsPicture,
): void {
  const { colours, axisPx } = picture;
  let lastX = Number.NEGATIVE_INFINITY;
  for (const [index, { bar, x, from }] of ends.entries()) {
    if (x < 0 || x > axisPx) continue;
    const end = endOf(bar);
    const glyph = GLYPHS[end];
    const next = ends[index + 1]?.from ?? axisPx;
    canvas.font = FONT;
    const label = endLabel(bar);
    const isRoomy = x - from > canvas.measureText(label).width + 2 * GLYPH_PX && x <= next + 1;
    if (isRoomy) {
      canvas.fillStyle = colours.text;
      canvas.textAlign = "right";
      canvas.textBaseline = "middle";
      canvas.fillText(label, x - GLYPH_PX, y);
    }
    if (glyph === "" || x - lastX < GLYPH_PX) continue;
    lastX = x;
    drawGlyph(
      canvas,
      glyph,
      x,
      y,
      end === "failed" || end === "oom" ? colours.bad : colours.quiet,
      picture,
      11,
    );
  }
}

/** "OOMKilled", "exit 1", "exit 0". */
export function endLabel(bar: Bar): string {
  if (bar.to === undefined) return "";
  if (bar.reason === "OOMKilled") return "OOMKilled";
  return bar.exitCode === undefined ? "exit not seen" : `exit ${bar.exitCode}`;
}

function drawGlyph(
  canvas: CanvasRenderingContext2D,
  glyph: string,
  x: number,
  y: number,
  colour: string,
  { colours }: RowsPicture,
  px: number,
): void {
  canvas.font = `bold ${px}px system-ui, sans-serif`;
  canvas.textAlign = "center";
  canvas.textBaseline = "middle";
  // On bars and beside them alike.
  canvas.lineWidth = 3;
  canvas.lineJoin = "round";
  canvas.strokeStyle = colours.ground;
  canvas.strokeText(glyph, x, y);
  canvas.lineWidth = 1;
  canvas.fillStyle = colour;
  canvas.fillText(glyph, x, y);
}
