/** A range of the time axis, wall-clock milliseconds of the node. `to` is after `from`. */
export interface Range {
  from: number;
  to: number;
}

/** The narrowest and the widest range that can be shown. */
export const NARROWEST_MS = 2_000;
export const WIDEST_MS = 31 * 86_400_000;

/** Returns the position of a time on an axis `px` pixels long. Times outside the range are outside 0 to `px`. */
export function xOf(at: number, { from, to }: Range, px: number): number {
  return ((at - from) / (to - from)) * px;
}

/** Returns the time at a pixel of the axis. */
export function timeAt(x: number, { from, to }: Range, px: number): number {
  return from + (x / px) * (to - from);
}

/** Scales the range's width by `factor` around a fixed time. The width is clamped to its bounds. */
export function zoomed({ from, to }: Range, factor: number, around: number): Range {
  const width = to - from;
  const next = Math.min(Math.max(width * factor, NARROWEST_MS), WIDEST_MS);
  const start = Math.round(around - ((around - from) / width) * next);
  return { from: start, to: start + Math.round(next) };
}

export function panned({ from, to }: Range, byMs: number): Range {
  return { from: Math.round(from + byMs), to: Math.round(to + byMs) };
}

/** Returns the range between two times in any order, at least as wide as the narrowest. */
export function rangeBetween(a: number, b: number): Range {
  const from = Math.round(Math.min(a, b));
  return { from, to: Math.max(Math.round(Math.max(a, b)), from + NARROWEST_MS) };
}

/**
 * Returns how often a live axis of this width moves, milliseconds: a second at ten minutes, at most four times a
 * second.
 */
export function moveEveryMs(widthMs: number): number {
  return Math.min(Math.max(Math.round(widthMs / 600), 250), 60_000);
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14].map((count) => count * DAY),
];
const TICK_PX = 90;

export interface Tick {
  at: number;
  label: string;
  /** Whether the label has the date: on the first tick, and the first of each day. */
  isDate: boolean;
}

/** Returns round times of day for an axis `px` pixels long, at least about 90 pixels apart. */
export function ticksOf(range: Range, px: number): Tick[] {
  const width = range.to - range.from;
  const least = (width * TICK_PX) / Math.max(px, TICK_PX);
  const step = STEPS.find((each) => each >= least) ?? STEPS.at(-1)!;
  // Steps of hours and days are aligned to the reader's time zone.
  const zone = new Date(range.from).getTimezoneOffset() * MINUTE;
  const ticks: Tick[] = [];
  let lastDay = "";
  for (let at = Math.ceil((range.from - zone) / step) * step + zone; at <= range.to; at += step) {
    const time = new Date(at);
    const day = time.toDateString();
    const isDate = day !== lastDay;
    lastDay = day;
    ticks.push({ at, label: tickLabel(time, step, isDate), isDate });
  }
  return ticks;
}

// Created once, because creation takes longer than a thousand uses.
const DATE_LABEL = new Intl.DateTimeFormat([], { month: "short", day: "numeric" });
const MINUTE_LABEL = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const SECOND_LABEL = new Intl.DateTimeFormat([], { timeStyle: "medium", hourCycle: "h23" });

function tickLabel(time: Date, step: number, isDate: boolean): string {
  if (step >= DAY) return DATE_LABEL.format(time);
  const clock = (step < MINUTE ? SECOND_LABEL : MINUTE_LABEL).format(time);
  return isDate ? `${clock} · ${DATE_LABEL.format(time)}` : clock;
}
