import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { quantity, shown, at as timeText } from "../../text.ts";
import type { Colours } from "./colours.ts";
import type { Hover } from "./hover.ts";
import { lookOf, type Mark } from "./marks.ts";
import type { Range } from "./scale.ts";
import { type MetPeriod, metPeriods, readingAt, type Signal } from "./signals.ts";

export interface PlotProps {
  signal: Signal;
  range: Range;
  /** Where the axis starts and its length, CSS pixels. */
  left: number;
  axisPx: number;
  ticks: readonly { at: number }[];
  marks: readonly Mark[];
  hover: Hover;
  colours: Colours;
  /** The time of the selected reading. */
  selectedAt: number | undefined;
  onSelect(): void;
}

const HEIGHT = 86;
const Y_AXIS = 58;
/** A reading is shown for times up to this long after it. */
export const LONGEST_MS = 60_000;

/** Observed values of a signal against its threshold. */
export function Plot(props: PlotProps) {
  const { signal, range, left, axisPx, colours, hover, selectedAt, marks } = props;
  const place = useRef<HTMLDivElement>(null);
  const value = useRef<HTMLSpanElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const periods = useMemo(() => metPeriods(signal), [signal]);
  const shownPeriods = useRef(periods);
  shownPeriods.current = periods;

  useLayoutEffect(() => {
    plot.current = new uPlot(optionsOf(latest, shownPeriods), dataOf(signal), place.current!);
    return () => plot.current?.destroy();
  }, []);
  useLayoutEffect(() => plot.current?.setData(dataOf(signal), false), [signal]);
  useLayoutEffect(() => plot.current?.setSize({ width: left + axisPx, height: HEIGHT }), [left, axisPx]);
  useLayoutEffect(
    () => plot.current?.setScale("x", { min: range.from, max: range.to }),
    [range.from, range.to, signal, left, axisPx],
  );
  useLayoutEffect(() => plot.current?.redraw(false, true), [colours, marks, selectedAt]);
  const show = () => {
    if (value.current) value.current.textContent = valueText(latest.current.signal, hover.at);
  };
  useEffect(() => hover.listen(show), []);
  useLayoutEffect(show);

  const last = signal.met.at(-1);
  return (
    <div class={`tl-plot ${last ?? ""}`} data-signal={signal.key}>
      <button
        type="button"
        class="tl-label"
        style={left > Y_AXIS ? { width: `${left - Y_AXIS}px` } : undefined}
        onClick={props.onSelect}
      >
        <b>{nameOf(signal)}</b> <span ref={value} />
      </button>
      <div ref={place} aria-hidden="true" />
    </div>
  );
}

export function nameOf({ plugin, scope }: Pick<Signal, "plugin" | "scope">): string {
  return `${shown(scope || plugin, 60)}${scope ? ` (${shown(plugin, 60)})` : ""}`;
}

/** Formats the reading at a time, or the last one: "94.1 % > 90 %: met (hard)". */
export function valueText(signal: Signal, time: number | undefined): string {
  const { observed, threshold, met, unit, operator } = signal;
  const index = time === undefined ? signal.at.length - 1 : readingAt(signal, time, LONGEST_MS);
  if (index === undefined) return "no reading";
  const [value, limit] = [observed[index] ?? null, threshold[index] ?? null];
  const when = time === undefined ? "" : ` at ${timeText(signal.at[index]!)}`;
  if (met[index] !== "none")
    return `${quantity(value, unit)} ${operator === "greaterThan" ? ">" : "<"} ${quantity(limit, unit)}: met (${met[index]})${when}`;
  return `${quantity(value, unit)}, met ${operator === "greaterThan" ? "above" : "below"} ${quantity(limit, unit)}${when}`;
}

function dataOf({ at, observed, threshold }: Signal): uPlot.AlignedData {
  return [at, observed, threshold];
}

function optionsOf(
  latest: { current: PlotProps },
  periods: { current: readonly MetPeriod[] },
): uPlot.Options {
  const colour = (name: keyof Colours) => () => latest.current.colours[name];
  const { left, axisPx, signal } = latest.current;
  return {
    width: left + axisPx,
    height: HEIGHT,
    padding: [8, 0, 6, Math.max(left - Y_AXIS, 0)],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, auto: false }, y: { range: (_, least, most) => paddedRange(least, most) } },
    series: [
      {},
      { stroke: colour("line"), width: 1.5, points: { size: 4, fill: colour("line") } },
      { stroke: colour("bad"), width: 1, dash: [5, 4], points: { show: false } },
    ],
    axes: [
      {
        size: 0,
        splits: () => latest.current.ticks.map(({ at }) => at),
        values: () => [],
        ticks: { show: false },
        grid: { stroke: colour("edge"), width: 0.5 },
      },
      {
        size: Math.min(Y_AXIS, left),
        gap: 3,
        space: 24,
        stroke: colour("quiet"),
        font: "11px system-ui, sans-serif",
        values: (_, values) => values.map((value) => quantity(value, signal.unit)),
        ticks: { show: false },
        grid: { stroke: colour("edge"), width: 0.5 },
      },
    ],
    hooks: {
      drawAxes: [(plot) => drawPeriods(plot, periods.current, latest.current.colours)],
      draw: [(plot) => drawMarks(plot, latest.current)],
    },
  };
}

// Starts from zero if values are near it; otherwise slightly below the minimum, so that the distance to the threshold
// is visible.
function paddedRange(least: number | null, most: number | null): [number, number] {
  if (least === null || most === null) return [0, 1];
  const low = least >= 0 && least < most / 3 ? 0 : least;
  const margin = (most - low || Math.abs(most) || 1) * 0.12;
  return [low === 0 ? 0 : low - margin, most + margin];
}

function drawPeriods(plot: uPlot, periods: readonly MetPeriod[], colours: Colours): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio || 1;
  ctx.save();
  for (const { from, to, met } of periods) {
    const x = Math.max(plot.valToPos(from, "x", true), bbox.left);
    const end = Math.min(Math.max(plot.valToPos(to, "x", true), x + 2 * ratio), bbox.left + bbox.width);
    if (end <= bbox.left || x >= bbox.left + bbox.width) continue;
    ctx.fillStyle = met === "hard" ? colours.bad : colours.warn;
    ctx.globalAlpha = 0.18;
    ctx.fillRect(x, bbox.top, end - x, bbox.height);
    ctx.globalAlpha = 1;
    // Hard is a thick line at the top, soft a thin one, because not everyone can distinguish colors.
    ctx.fillRect(x, bbox.top, end - x, (met === "hard" ? 4 : 1.5) * ratio);
  }
  ctx.restore();
}

function drawMarks(plot: uPlot, { marks, colours, selectedAt, signal }: PlotProps): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio || 1;
  ctx.save();
  ctx.globalAlpha = 0.6;
  for (const { at, kind } of marks) {
    const x = plot.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.fillStyle = colours[lookOf(kind).tone];
    ctx.fillRect(x - ratio / 2, bbox.top, ratio, bbox.height);
  }
  ctx.globalAlpha = 1;
  const index = selectedAt === undefined ? -1 : signal.at.indexOf(selectedAt);
  const value = signal.observed[index];
  if (value !== undefined && value !== null) {
    ctx.strokeStyle = colours.text;
    ctx.lineWidth = 2 * ratio;
    ctx.beginPath();
    ctx.arc(
      plot.valToPos(selectedAt!, "x", true),
      plot.valToPos(value, "y", true),
      5 * ratio,
      0,
      2 * Math.PI,
    );
    ctx.stroke();
  }
  ctx.restore();
}
