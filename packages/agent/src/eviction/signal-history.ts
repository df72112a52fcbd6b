import { StateDamaged } from "@nodekeeper/api/errors";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import {
  Backlog,
  MOST_MINUTES,
  type SignalStore,
  type StoredMinute,
  type StoredReading,
  type StoredSignal,
  WriteBehind,
} from "../state/index.ts";
import type { RoundReadings } from "./readings.ts";

type Reading = RoundReadings["readings"][number];
type History = ApiAnswers["eviction/signals"];

export interface SignalHistoryOptions {
  store: SignalStore;
  clock: Clock;
  log: Logger;
}

const MINUTE_MS = 60_000;
// Bound the history in the database to 6 MB. A plugin has one signal per round, but may name another one each time.
const MOST_SIGNALS = 64;
const MOST_OF_PLUGIN = 8;
// Bounds memory while the database can't be written.
const MOST_WAITING = 60;
const severity = { none: 0, soft: 1, hard: 2 } as const;

interface Signal extends StoredSignal {
  /** Monotonic time of its last reading. */
  lastAt: number;
}

/** The minute that has not ended yet. */
interface OpenMinute {
  /**
   * Wall milliseconds of the first and the last round. `to` is `from` plus the elapsed monotonic time, so that a step
   * of the wall clock does not change the length of the minute.
   */
  from: number;
  to: number;
  /** Monotonic time of the first round. */
  startedAt: number;
  readings: Map<number, Reading>;
}

/**
 * One reading of each signal per minute for 24 hours, across restarts of the agent.
 *
 * 1. The most severe reading of each minute is kept: met rather than not, then closest to the threshold or farthest
 *    beyond it. Nothing is averaged or interpolated.
 * 2. A minute is written by the first round of the next one, and when the agent stops: at most once a minute, without a
 *    timer. SIGKILL loses the current minute.
 * 3. At most 64 signals are kept, at most 8 per plugin. A ninth signal of a plugin replaces the least recently reported
 *    signal of that plugin. A 65th signal replaces the least recently reported signal of all plugins; if all were
 *    reported within the last minute, it is not recorded.
 * 4. If the unit or the operator of a signal changes, its earlier readings are omitted.
 */
export class SignalHistory {
  readonly #options: SignalHistoryOptions;
  readonly #writes: WriteBehind;
  /** By plugin and scope. */
  readonly #signals = new Map<string, Signal>();
  readonly #changed = new Set<Signal>();
  readonly #waiting = new Backlog<StoredMinute>(MOST_WAITING);
  #open: OpenMinute | undefined;
  #lastId: number;

  /** Loads the stored history. If it cannot be read, logs the error and starts with an empty one. */
  constructor(options: SignalHistoryOptions) {
    this.#options = options;
    const { store, clock, log } = options;
    this.#writes = new WriteBehind({
      what: "the history of signals",
      write: () => this.#write(),
      onFailure: () => void this.#waiting.bound(),
      log,
    });
    this.#lastId = store.lastId;
    try {
      for (const signal of store.signals().slice(-MOST_SIGNALS))
        this.#signals.set(keyOf(signal), { ...signal, lastAt: clock.monotonic() });
    } catch (error) {
      log.error(
        { errorId: StateDamaged.id, err: error },
        "history of signals can't be read, starting a new one",
      );
    }
  }

  /** Adds the readings of a round. Never throws. @param at wall milliseconds */
  add(at: number, readings: readonly Reading[]): void {
    const now = this.#options.clock.monotonic();
    if (this.#open && now - this.#open.startedAt >= MINUTE_MS) this.#end();
    this.#open ??= { from: at, to: at, startedAt: now, readings: new Map() };
    const { readings: worst, from, startedAt } = this.#open;
    this.#open.to = from + Math.round(now - startedAt);
    // Done first, so that a new signal does not replace one that this round also reports.
    for (const reading of readings) {
      const signal = this.#signals.get(keyOf(reading));
      if (signal) signal.lastAt = now;
    }
    for (const reading of readings) {
      const signal = this.#signalOf(reading, now);
      if (!signal) continue;
      const known = worst.get(signal.id);
      if (!known || isWorse(reading, known)) worst.set(signal.id, reading);
    }
  }

  /** Writes the minute in progress. Call last. */
  close(): void {
    if (this.#open) this.#end();
    this.#writes.close();
  }

  /**
   * Returns the minutes that overlap a range (wall milliseconds), with the values of each signal; null where it was not
   * reported. @param plugin only its signals; undefined: all
   */
  page({ since, until, plugin }: { since: number; until: number; plugin?: string | undefined }): History {
    const unwritten = [...this.#waiting.items, ...(this.#open ? [minuteOf(this.#open)] : [])];
    const minutes = [
      ...this.#options.store.minutes(since, until),
      ...unwritten.filter(({ from, to }) => to >= since && from <= until),
    ].slice(-MOST_MINUTES);
    const signals = [...this.#signals.values()].filter(
      (signal) => plugin === undefined || signal.plugin === plugin,
    );
    const columns = new Map(signals.map((signal) => [signal.id, columnsOf(signal, minutes.length)]));
    for (const [at, { readings }] of minutes.entries())
      for (const [id, observed, threshold, met] of readings) {
        const column = columns.get(id);
        if (!column) continue;
        column.observed[at] = observed;
        column.threshold[at] = threshold;
        column.met[at] = isMet(met) ? met : null;
      }
    return {
      minutes: minutes.map(({ from, to }) => ({ from, to })),
      signals: [...columns.values()].filter(({ met }) => met.some((value) => value !== null)),
    };
  }

  #signalOf({ plugin, scope, operator, unit }: Reading, now: number): Signal | undefined {
    const key = keyOf({ plugin, scope });
    const known = this.#signals.get(key);
    if (known?.operator === operator && known.unit === unit) return known;
    // The operator or the unit has changed, so earlier readings are not comparable.
    if (known) this.#forget(known);
    if (!this.#hasPlaceFor(plugin, now)) return undefined;
    const signal = { id: ++this.#lastId, plugin, scope, operator, unit, lastAt: now };
    this.#signals.set(key, signal);
    this.#changed.add(signal);
    return signal;
  }

  #hasPlaceFor(plugin: string, now: number): boolean {
    const all = [...this.#signals.values()];
    const own = all.filter((signal) => signal.plugin === plugin);
    if (own.length < MOST_OF_PLUGIN && all.length < MOST_SIGNALS) return true;
    const from = own.length < MOST_OF_PLUGIN ? all : own;
    const oldest = from.reduce((one, other) => (other.lastAt < one.lastAt ? other : one));
    if (from === all && now - oldest.lastAt < MINUTE_MS) return false;
    this.#forget(oldest);
    return true;
  }

  #forget(signal: Signal): void {
    this.#signals.delete(keyOf(signal));
    this.#changed.delete(signal);
    this.#open?.readings.delete(signal.id);
  }

  #end(): void {
    if (this.#open) this.#waiting.add(minuteOf(this.#open));
    this.#open = undefined;
    this.#writes.flush();
  }

  #write(): void {
    const known = [...this.#signals.values()].map(({ id }) => id);
    this.#options.store.save([...this.#changed], known, this.#waiting.items);
    this.#changed.clear();
    this.#waiting.clear();
  }
}

function keyOf({ plugin, scope }: Pick<StoredSignal, "plugin" | "scope">): string {
  return `${plugin}\n${scope}`;
}

function minuteOf({ from, to, readings }: OpenMinute): StoredMinute {
  const stored = [...readings].map(
    ([id, { observed, threshold, met }]): StoredReading => [id, observed, threshold, met],
  );
  return { from, to, readings: stored };
}

function columnsOf({ plugin, scope, operator, unit }: Signal, count: number): History["signals"][number] {
  const none = () => new Array<null>(count).fill(null);
  return {
    plugin,
    scope,
    operator: operator === "lessThan" ? "lessThan" : "greaterThan",
    ...(unit === undefined ? {} : { unit }),
    observed: none(),
    threshold: none(),
    met: none(),
  };
}

function isMet(met: string): met is Reading["met"] {
  return Object.hasOwn(severity, met);
}

function isWorse(one: Reading, other: Reading): boolean {
  const by = severity[one.met] - severity[other.met];
  if (by !== 0) return by > 0;
  if (one.observed === null || other.observed === null) return one.observed !== null;
  // The threshold may change within the minute.
  const moved = one.threshold === null || other.threshold === null ? 0 : one.threshold - other.threshold;
  const distance = one.observed - other.observed - moved;
  return one.operator === "greaterThan" ? distance > 0 : distance < 0;
}
