import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { counted } from "@nodekeeper/api/wording";
import { age, quantity, at as timeText } from "../text.ts";

export type SignalHistory = ApiAnswers["eviction/signals"];
export type Signal = SignalHistory["signals"][number];
type Met = NonNullable<Signal["met"][number]>;

export const DAY_MS = 24 * 60 * 60 * 1_000;

/** One reading of a signal, which holds for a minute. Wall-clock milliseconds. */
export interface DayReading {
  from: number;
  to: number;
  /** Null if the plugin reported no value. */
  observed: number | null;
  threshold: number | null;
  met: Met;
}

/** A time without readings. */
export interface DayGap {
  from: number;
  to: number;
  /** Whether there is no record at all, or only no reading of this signal. */
  why: "notRecorded" | "notReported";
}

/** A signal in a range of time: what was read, and the times in which nothing was. */
export interface Day {
  /** Oldest first. Adjoining readings have no time between them. */
  readings: DayReading[];
  gaps: DayGap[];
}

/**
 * Returns the readings of a signal in a range. A reading lasts until the next one if no round is missing between them,
 * else until its own last round; the rest is a gap.
 */
export function dayOf(
  { minutes }: Pick<SignalHistory, "minutes">,
  signal: Signal,
  range: { from: number; to: number },
): Day {
  const longest = longestSilence(minutes);
  const readings: DayReading[] = [];
  const gaps: DayGap[] = [];
  const addGap = (gap: DayGap) => {
    const last = gaps.at(-1);
    if (last?.why === gap.why && last.to >= gap.from) last.to = gap.to;
    else if (gap.to > gap.from) gaps.push(gap);
  };
  let known = range.from;
  for (const [at, minute] of minutes.entries()) {
    const next = minutes[at + 1]?.from ?? range.to;
    const [from, last] = [Math.max(minute.from, range.from), Math.min(minute.to, range.to)];
    if (last < range.from || from > range.to) continue;
    if (from > known) addGap({ from: known, to: from, why: "notRecorded" });
    // If the wall clock was set back, the next minute begins before this one.
    const to = next >= minute.to && next - minute.to <= longest ? Math.min(next, range.to) : last;
    known = Math.max(known, to);
    const met = signal.met[at];
    if (met == null) addGap({ from, to, why: "notReported" });
    else
      readings.push({
        from,
        to,
        met,
        observed: signal.observed[at] ?? null,
        threshold: signal.threshold[at] ?? null,
      });
  }
  if (known < range.to) addGap({ from: known, to: range.to, why: "notRecorded" });
  return { readings, gaps };
}

// Between the rounds of a minute and those of the next. A longer silence is a gap: as in the timeline.
function longestSilence(minutes: SignalHistory["minutes"]): number {
  const silences = minutes.slice(1).map(({ from }, at) => Math.max(from - minutes[at]!.to, 0));
  const [median = 5_000] = silences.sort((a, b) => a - b).slice(silences.length >> 1);
  return Math.max(3 * median, 15_000);
}

/** Returns the range of values to draw: with 0, with all thresholds, and some space above. */
export function valueRange(readings: readonly DayReading[]): { low: number; high: number } {
  const values = readings.flatMap(({ observed, threshold }) => [observed ?? 0, threshold ?? 0]);
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values);
  return { low, high: high === low ? low + 1 : high + (high - low) * 0.05 };
}

/** Sorts signals: those that met their threshold longest first, then by plugin and scope. */
export function bySeverity<Item extends { signal: Signal; day: Day }>(items: readonly Item[]): Item[] {
  const metMs = ({ day }: Item) => sumOf(day.readings.filter(({ met }) => met !== "none"));
  const nameOf = ({ signal }: Item) => `${signal.plugin}\n${signal.scope}`;
  return items.toSorted((a, b) => metMs(b) - metMs(a) || (nameOf(a) < nameOf(b) ? -1 : 1));
}

/**
 * "last 0.42, from 0.1 to 0.93; threshold 0.8 met in 14 of 1260 minutes; not recorded for 3 h": what a plot shows, in
 * words. How long within a minute the threshold was met is not recorded.
 */
export function dayText({ readings, gaps }: Day, { unit }: Pick<Signal, "unit">): string {
  const values = readings.flatMap(({ observed }) => observed ?? []);
  const text = (value: number) => quantity(value, unit);
  const [last] = values.slice(-1);
  const thresholds = [...new Set(readings.flatMap(({ threshold }) => threshold ?? []))].map(text);
  const threshold = thresholds.length > 3 ? "varies," : thresholds.join(", ");
  const met = readings.filter((reading) => reading.met !== "none").length;
  const minutes = counted(readings.length, "minute");
  return [
    last === undefined
      ? "no value is recorded"
      : `last ${text(last)}, from ${text(Math.min(...values))} to ${text(Math.max(...values))}`,
    thresholds.length > 0 && `threshold ${threshold} ${met > 0 ? `met in ${met} of ${minutes}` : "not met"}`,
    ...(["notRecorded", "notReported"] as const).map((why) => {
      const ms = sumOf(gaps.filter((gap) => gap.why === why));
      return ms > 0 && `${gapWords[why]} for ${age(ms)}`;
    }),
  ]
    .filter(Boolean)
    .join("; ");
}

const gapWords = { notRecorded: "not recorded", notReported: "not reported" } as const;

/** "12:34:00: 0.93, threshold 0.8, met (hard)": the reading at a time, or that there is none. */
export function readingText({ readings, gaps }: Day, { unit }: Pick<Signal, "unit">, time: number): string {
  const found = readings.findLast(({ from, to }) => from <= time && time <= to);
  if (!found) {
    const gap = gaps.find(({ from, to }) => from <= time && time <= to);
    return `${timeText(time)}: ${gapWords[gap?.why ?? "notRecorded"]}`;
  }
  const { observed, threshold, met } = found;
  return [
    `${timeText(time)}: ${observed === null ? "no value" : quantity(observed, unit)}`,
    threshold !== null && `threshold ${quantity(threshold, unit)}`,
    met !== "none" && `met (${met})`,
  ]
    .filter(Boolean)
    .join(", ");
}

function sumOf(spans: readonly { from: number; to: number }[]): number {
  return spans.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** Returns a path of horizontal steps, interrupted where a value is missing or the next does not adjoin. */
export function stepsOf(steps: readonly { from: number; to: number; y: number | null }[]): string {
  let end: number | undefined;
  return steps
    .map(({ from, to, y }) => {
      const start = end !== undefined && from - end < 0.01 ? "V" : "M";
      end = y === null ? undefined : to;
      if (y === null) return "";
      // A single reading is wide enough to be seen.
      return `${start === "V" ? `V${y}` : `M${from} ${y}`}H${Math.max(to, from + 1)}`;
    })
    .join("");
}
