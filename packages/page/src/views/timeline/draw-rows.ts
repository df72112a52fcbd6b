import type { Colours } from "./colours.ts";
import { type Box, type RowsPicture, shapesOf } from "./row-shapes.ts";
import { xOf } from "./scale.ts";
import type { Sprites } from "./sprites.ts";

export interface DrawnRows extends RowsPicture {
  /** Where the time axis starts. */
  left: number;
  height: number;
  ticks: readonly { at: number }[];
  colours: Colours;
}

/** Draws the rows on a canvas as wide as the labels and the axis together. */
export function drawRows(canvas: CanvasRenderingContext2D, rows: DrawnRows, sprites: Sprites): void {
  const { left, axisPx, height, colours } = rows;
  canvas.clearRect(0, 0, left + axisPx, height);
  canvas.save();
  canvas.beginPath();
  canvas.rect(left, 0, axisPx, height);
  canvas.clip();
  canvas.translate(left, 0);
  drawUnknown(canvas, rows);
  drawGrid(canvas, rows);
  const shapes = shapesOf(rows);
  fill(canvas, shapes.sandboxes, colours.quiet);
  fill(canvas, shapes.bars.line, colours.line, 0.85);
  fill(canvas, shapes.bars.quiet, colours.quiet, 0.5);
  fill(canvas, shapes.bars.bad, colours.bad, 0.5);
  fill(canvas, shapes.starts, colours.text);
  if (shapes.selected) outline(canvas, shapes.selected, colours.text);
  for (const label of shapes.labels) sprites.text(canvas, label, colours.text);
  for (const sign of shapes.signs) sprites.sign(canvas, sign, colours);
  canvas.restore();
}

// Before the start of the log, or where it has not been read, events are unknown, which does not mean that nothing
// happened.
function drawUnknown(
  canvas: CanvasRenderingContext2D,
  { knownSince, range, axisPx, height, colours }: DrawnRows,
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

function drawGrid(
  canvas: CanvasRenderingContext2D,
  { rows, top, rowHeight, ticks, range, axisPx, height, colours }: DrawnRows,
): void {
  canvas.fillStyle = colours.edge;
  for (const { at } of ticks) canvas.fillRect(Math.round(xOf(at, range, axisPx)), 0, 0.5, height);
  for (let index = 1; index <= rows.length; index++)
    canvas.fillRect(0, top + index * rowHeight - 0.5, axisPx, 0.5);
}

function fill(canvas: CanvasRenderingContext2D, boxes: readonly Box[], colour: string, alpha = 1): void {
  canvas.globalAlpha = alpha;
  canvas.fillStyle = colour;
  for (const [x, y, width, height] of boxes) canvas.fillRect(x, y, Math.max(width, 1), height);
  canvas.globalAlpha = 1;
}

function outline(canvas: CanvasRenderingContext2D, [x, y, width, height]: Box, colour: string): void {
  canvas.strokeStyle = colour;
  canvas.lineWidth = 2;
  canvas.strokeRect(x, y, Math.max(width, 3), height);
  canvas.lineWidth = 1;
}
