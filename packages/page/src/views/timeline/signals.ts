import type { RoundReadings } from "../../live.ts";
import type { Range } from "./scale.ts";

type Reading = RoundReadings["readings"][number];

/** The observations of one signal by one plugin, as columns for a plot. */
export interface Signal {
  key: string;
  plugin: string;
  /** Empty if the plugin named none. */
  scope: string;
  unit: string | undefined;
  operator: Reading["operator"];
  /** Wall-clock milliseconds, oldest first. Null values mark a gap. */
  at: number[];
  observed: (number | null)[];
  threshold: (number | null)[];
  met: Reading["met"][];
}

/** A period in which every round met the threshold. */
export interface MetPeriod extends Range {
  met: "soft" | "hard";
}

export const keyOf = ({ plugin, scope }: Pick<Reading, "plugin" | "scope">) => `${plugin}\n${scope}`;

/** Merges rounds of the records and the stream, deduplicated, oldest first. */
export function mergeRounds(
  older: readonly RoundReadings[],
  newer: readonly RoundReadings[],
): RoundReadings[] {
  const byTime = new Map([...older, ...newer].map((round) => [round.at, round]));
  return [...byTime.values()].sort((a, b) => a.at - b.at);
}

/** Returns the maximum distance between readings of consecutive rounds. A longer one is a gap in the plot. */
export function longestStep(rounds: readonly RoundReadings[]): number {
  const steps = rounds.slice(1).map(({ at }, index) => at - rounds[index]!.at);
  const [median = 5_000] = steps.sort((a, b) => a - b).slice(steps.length >> 1);
  return Math.max(3 * median, 15_000);
}

/**
 * Returns since when the rounds of the stream have no gap. Gaps occur if the connection was lost or closed by a hidden
 * page. Undefined if there are no rounds.
 */
export function wholeSince(rounds: readonly RoundReadings[]): number | undefined {
  const longest = longestStep(rounds);
  const hole = rounds.findLastIndex(({ at }, index) => index > 0 && at - rounds[index - 1]!.at > longest);
  return rounds[Math.max(hole, 0)]?.at;
}

/** Returns the signals with a reported value, with all their readings. */
export function signalsOf(rounds: readonly RoundReadings[]): Signal[] {
  const signals = new Map<string, Signal>();
  const longest = longestStep(rounds);
  for (const { at, readings } of rounds)
    for (const reading of readings) {
      const { plugin, scope, unit, operator, observed, threshold, met } = reading;
      const key = keyOf(reading);
      let signal = signals.get(key);
      if (!signal) {
        signal = { key, plugin, scope, unit, operator, at: [], observed: [], threshold: [], met: [] };
        signals.set(key, signal);
      }
      const last = signal.at.at(-1);
      if (last !== undefined && at - last > longest)
        add(signal, { at: last + 1, observed: null, threshold: null, met: "none" });
      add(signal, { at, observed, threshold, met });
    }
  return [...signals.values()].filter(({ observed }) => observed.some((value) => value !== null));
}

function add(
  signal: Signal,
  { at, observed, threshold, met }: Pick<Reading, "observed" | "threshold" | "met"> & { at: number },
): void {
  signal.at.push(at);
  signal.observed.push(observed);
  signal.threshold.push(threshold);
  signal.met.push(met);
}

/**
 * Returns the periods in which the threshold was met: from the first round that reports it to the first that does not.
 */
export function metPeriods({ at, met }: Pick<Signal, "at" | "met">): MetPeriod[] {
  const periods: MetPeriod[] = [];
  for (const [index, kind] of met.entries()) {
    const last = periods.at(-1);
    const isOpen = last !== undefined && index > 0 && met[index - 1] === last.met;
    if (isOpen) last.to = at[index]!;
    if (kind !== "none" && !(isOpen && last.met === kind))
      periods.push({ from: at[index]!, to: at[index]!, met: kind });
  }
  return periods;
}

/** Returns the reading at a time: the last one before it, at most `longestMs` old. Undefined in gaps. */
export function readingAt({ at, observed }: Signal, time: number, longestMs: number): number | undefined {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  const index = low - 1;
  if (index < 0 || observed[index] === null || time - at[index]! > longestMs) return undefined;
  return index;
}

/**
 * Sorts signals by relevance: those met in the range, longest first, then those closest to their threshold, then by
 * name.
 */
export function bySeverity(signals: readonly Signal[], range: Range): Signal[] {
  const ranked = signals.map((signal) => ({
    signal,
    met: metMs(signal, range),
    closeness: closenessOf(signal, range),
  }));
  return ranked
    .sort((a, b) => b.met - a.met || b.closeness - a.closeness || (a.signal.key < b.signal.key ? -1 : 1))
    .map(({ signal }) => signal);
}

function metMs(signal: Signal, range: Range): number {
  return metPeriods(signal)
    .filter(({ from, to }) => from <= range.to && to >= range.from)
    .reduce((sum, { from, to }) => sum + Math.min(to, range.to) - Math.max(from, range.from) + 1, 0);
}

// 1 at the threshold, less below it, for both operators.
function closenessOf({ at, observed, threshold, operator }: Signal, range: Range): number {
  let closest = Number.NEGATIVE_INFINITY;
  for (const [index, time] of at.entries()) {
    const [value, limit] = [observed[index], threshold[index]];
    if (time < range.from || time > range.to || value == null || limit == null) continue;
    const size = Math.max(Math.abs(value), Math.abs(limit), Number.MIN_VALUE);
    closest = Math.max(closest, 1 - (operator === "greaterThan" ? limit - value : value - limit) / size);
  }
  return closest;
}
