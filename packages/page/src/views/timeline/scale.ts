/** A stretch of the time axis: wall milliseconds of the node, `to` after `from`. */
export interface Range {
  from: number;
  to: number;
}

/** The narrowest stretch that can be shown, and the widest. */
export const NARROWEST_MS = 2_000;
export const WIDEST_MS = 31 * 86_400_000;

/** Where a time is on an axis of so many pixels; outside 0 to `px` for times outside the range. */
export function xOf(at: number, { from, to }: Range, px: number): number {
  return ((at - from) / (to - from)) * px;
}

/** The time at a pixel of the axis. */
export function timeAt(x: number, { from, to }: Range, px: number): number {
  return from + (x / px) * (to - from);
}

/** The range with its width times `factor`; `around` stays where it is. The width is kept within its bounds. */
export function zoomed({ from, to }: Range, factor: number, around: number): Range {
  const width = to - from;
  const next = Math.min(Math.max(width * factor, NARROWEST_MS), WIDEST_MS);
  const start = Math.round(around - ((around - from) / width) * next);
  return { from: start, to: start + Math.round(next) };
}

export function panned({ from, to }: Range, byMs: number): Range {
  return { from: Math.round(from + byMs), to: Math.round(to + byMs) };
}

/** A range of two times in either order, at least as wide as the narrowest. */
export function rangeBetween(a: number, b: number): Range {
  const from = Math.round(Math.min(a, b));
  return { from, to: Math.max(Math.round(Math.max(a, b)), from + NARROWEST_MS) };
}

/** How often a live axis of this width moves, milliseconds: a second at ten minutes, not more often than four times a second. */
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
  /** Whether the label has the date: the first tick, and the first of each day. */
  isDate: boolean;
}

/** Round times of day for an axis of so many pixels, about 90 pixels apart or more. */
export function ticksOf(range: Range, px: number): Tick[] {
  const width = range.to - range.from;
  const least = (width * TICK_PX) / Math.max(px, TICK_PX);
  const step = STEPS.find((each) => each >= least) ?? STEPS.at(-1)!;
  // Steps of hours and days are round in the reader's time zone.
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

// Made once: making one takes longer than a thousand uses.
const DATE_LABEL = new Intl.DateTimeFormat([], { month: "short", day: "numeric" });
const MINUTE_LABEL = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const SECOND_LABEL = new Intl.DateTimeFormat([], { timeStyle: "medium", hourCycle: "h23" });

function tickLabel(time: Date, step: number, isDate: boolean): string {
  if (step >= DAY) return DATE_LABEL.format(time);
  const clock = (step < MINUTE ? SECOND_LABEL : MINUTE_LABEL).format(time);
  return isDate ? `${clock} · ${DATE_LABEL.format(time)}` : clock;
}
