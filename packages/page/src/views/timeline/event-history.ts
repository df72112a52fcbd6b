import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { Query } from "../../api.ts";
import type { LifecycleEvent } from "../../live.ts";
import { addEvents, barsOf, type PodStatus, type Pods } from "./bars.ts";
import { OneRead } from "./one-read.ts";
import type { Range } from "./scale.ts";
import { missingFor, positionOf, type Span, trimmed, withSpan } from "./spans.ts";

type EventPage = ApiAnswers["events"];
type PodPage = ApiAnswers["pods"];

/** Reads events and pods. */
export interface EventReader {
  events(query: Query, signal: AbortSignal): Promise<EventPage>;
  pods(query: Query, signal: AbortSignal): Promise<PodPage>;
  /** Wall-clock time, milliseconds. */
  now(): number;
}

/** The range to show. `isLive` if it moves with the time. */
export interface Wanted extends Range {
  isLive: boolean;
}

/** Maximum number of events in memory: some three hours of a busy node, about 10 MB. */
export const MOST_EVENTS = 30_000;
export const PAGE = 1_000;
// Number of events kept after trimming. Reading stops there.
const ROOM = MOST_EVENTS - 2 * PAGE;
// How long the start of the log is cached.
const START_MS = 60_000;

/**
 * The lifecycle events of the shown range, from the log and the stream, and the resulting container bars.
 *
 * 1. Events are deduplicated and in log order.
 * 2. At most `MOST_EVENTS` are kept. If a range has more, the newest are shown while it is live, otherwise the oldest.
 * 3. One request at a time; it is canceled when its purpose is obsolete.
 */
export class EventHistory {
  pods: Pods = new Map();
  /** Time of the oldest event in the log. Undefined until known, or if the log is empty. */
  logStart: number | undefined;
  /** Increases with every change of `pods`. */
  version = 0;
  readonly #reader: EventReader;
  readonly #onChange: () => void;
  #spans: Span[] = [];
  #listed: { pods: PodStatus[]; sequence: number; at: number } | undefined;
  // Set if events after the list were dropped: containers that exited would otherwise be shown as running.
  #mustList = false;
  #log = "";
  #lastLive = 0;
  #startedAt = Number.NEGATIVE_INFINITY;
  #wanted: Wanted | undefined;
  #filledFor: Wanted | undefined;
  readonly #reading: OneRead<Wanted>;

  constructor(reader: EventReader, onChange: () => void) {
    this.#reader = reader;
    this.#onChange = onChange;
    this.#reading = new OneRead({ now: () => reader.now(), onChange });
  }

  /** Whether older events are being read. */
  get isReading(): boolean {
    return this.#reading.wanted !== undefined;
  }

  /** Why events cannot be read. An `Unreachable` is retried. */
  get error(): unknown {
    return this.#reading.error;
  }

  /** Since when all events are known, up to now or to the end of what was read. */
  get knownSince(): number | undefined {
    const from = this.#wanted?.from ?? Number.POSITIVE_INFINITY;
    const span =
      this.#spans.findLast(({ since }) => since <= from) ??
      this.#spans.find(({ since, events }) => Number.isFinite(since) || events.length > 0);
    return span && Number.isFinite(span.since) ? span.since : span?.events[0]?.at;
  }

  /** Until when events are known without a gap. Undefined if there is none. */
  get knownUntil(): number | undefined {
    const from = this.#wanted?.from ?? 0;
    const missing = missingFor(this.#spans, from, this.#newest);
    if (!missing || !("after" in missing)) return undefined;
    return this.#spans.findLast(({ last }) => last === missing.after)?.events.at(-1)?.at;
  }

  /** Takes new events from the stream. */
  takeLive(events: readonly LifecycleEvent[]): void {
    const added = events.slice(events.findLastIndex(({ sequence }) => sequence <= this.#lastLive) + 1);
    const [first, last] = [added[0], added.at(-1)];
    if (!first || !last) return;
    this.#lastLive = last.sequence;
    const newest = this.#spans.at(-1);
    // `addEvents` does not change bars that end according to the list, so they are rebuilt up to it.
    const isNext = newest?.last === first.sequence - 1 && newest.last >= (this.#listed?.sequence ?? 0);
    this.#add(
      { since: Number.POSITIVE_INFINITY, after: first.sequence - 1, last: last.sequence, events: added },
      isNext,
    );
  }

  /** Drops everything because events were missed: the log was replaced, or continued without this page. */
  reset(): void {
    this.close();
    this.#spans = [];
    this.#listed = undefined;
    this.#lastLive = 0;
    this.pods = new Map();
    this.version++;
  }

  /** Reads what is missing for a range. Must be called whenever the range moves or anything changes. */
  want(wanted: Wanted): void {
    this.#wanted = wanted;
    const isWhole =
      !missingFor(this.#spans, wanted.from, this.#newest) || (this.isFull && serves(this.#filledFor, wanted));
    if (isWhole && this.#listed && !this.#mustList) {
      this.close();
      return;
    }
    if (serves(this.#reading.wanted, wanted) || !this.#reading.mayStart) return;
    if (!isWhole && this.isFull) this.#trim(MOST_EVENTS / 2);
    this.#reading.start(wanted, (signal) => this.#read(wanted, signal));
  }

  close(): void {
    this.#reading.cancel();
  }

  get #shownTo(): number {
    return this.#wanted && !this.#wanted.isLive ? this.#wanted.to : Number.POSITIVE_INFINITY;
  }

  get #newest(): number {
    return Math.max(this.#listed?.sequence ?? 0, this.#lastLive);
  }

  get #count(): number {
    return this.#spans.reduce((sum, { events }) => sum + events.length, 0);
  }

  /** Whether no more events fit in memory. */
  get isFull(): boolean {
    return this.#count >= ROOM;
  }

  async #read(wanted: Wanted, signal: AbortSignal): Promise<void> {
    const { from, isLive } = wanted;
    if (!this.#listed || this.#mustList) await this.#list(signal);
    let start = from;
    for (;;) {
      const missing = missingFor(this.#spans, start, this.#newest);
      if (this.isFull) this.#filledFor = wanted;
      if (!missing || this.isFull) return;
      if ("since" in missing) await this.#findStart(signal);
      signal.throwIfAborted();
      const query =
        "since" in missing
          ? { since: Math.floor(missing.since) }
          : { cursor: `${this.#log}-${missing.after}` };
      const page = await this.#reader.events({ ...query, limit: PAGE }, signal);
      signal.throwIfAborted();
      const since = "since" in missing ? missing.since : Number.POSITIVE_INFINITY;
      const span = this.#spanOf(page, since);
      // The following events have expired meanwhile, or are from another log.
      if (!span) return this.#startOver();
      const newest = this.#newest;
      if (isLive && newest - span.last > ROOM) {
        const rest = await this.#reader.events(
          { cursor: `${this.#log}-${newest - ROOM}`, limit: PAGE },
          signal,
        );
        signal.throwIfAborted();
        const last = this.#spanOf(rest, Number.POSITIVE_INFINITY);
        if (!last) return this.#startOver();
        start = last.events[0]?.at ?? start;
        this.#add({ ...last, since: start }, false);
      } else this.#add(span, false);
      this.#onChange();
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const pods: PodStatus[] = [];
    let after: string | undefined;
    let first: PodPage | undefined;
    do {
      const page: PodPage = await this.#reader.pods({ limit: PAGE, continue: after }, signal);
      signal.throwIfAborted();
      pods.push(...page.items);
      first ??= page;
      after = page.continue;
    } while (after !== undefined);
    const { log, sequence } = positionOf(first.cursor);
    this.#log = log;
    this.#mustList = false;
    this.#listed = { pods, sequence, at: first.listedAt ?? this.#reader.now() };
    this.#rebuild();
    this.#onChange();
  }

  // The start of the log moves as events expire.
  async #findStart(signal: AbortSignal): Promise<void> {
    if (this.#reader.now() - this.#startedAt < START_MS) return;
    const { items } = await this.#reader.events({ since: 0, limit: 1 }, signal);
    signal.throwIfAborted();
    const [first] = items;
    if (first?.kind === "event") this.logStart = first.event.at;
    this.#startedAt = this.#reader.now();
  }

  #spanOf({ items, cursor }: EventPage, since: number): Span | undefined {
    const { log, sequence: last } = positionOf(cursor);
    if (items.some(({ kind }) => kind === "snapshot") || log !== this.#log) return undefined;
    const events = items.flatMap((item) => (item.kind === "event" ? [item.event] : []));
    return { since, after: (events[0]?.sequence ?? last + 1) - 1, last, events };
  }

  #startOver(): void {
    this.#spans = [];
    this.#listed = undefined;
    this.#lastLive = 0;
  }

  #add(span: Span, isNext: boolean): void {
    this.#spans = withSpan(this.#spans, span);
    const isTooLong = this.#count > MOST_EVENTS;
    if (isTooLong) this.#trim(ROOM);
    if (isNext && !isTooLong) {
      addEvents(this.pods, span.events);
      this.version++;
    } else this.#rebuild();
  }

  #trim(most: number): void {
    this.#spans = trimmed(this.#spans, most, this.#shownTo);
    this.#mustList = true;
  }

  #rebuild(): void {
    this.pods = barsOf(this.#spans, this.#listed);
    this.version++;
  }
}

// Events are read forward from the start, so a read serves ranges that start there or soon after.
function serves(read: Wanted | undefined, { from, to }: Wanted): boolean {
  return read !== undefined && from >= read.from && from - read.from <= (to - from) / 2;
}
