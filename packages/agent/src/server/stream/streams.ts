import { readParameters, streamParameters, streamTopics } from "@nodekeeper/api/http";
import { type Clock, LoopTurns, NodekeeperError, sleepOrAbort } from "@nodekeeper/core/lib";
import { beforeAnyLog, type LogPosition } from "../../lifecycle/index.ts";
import { eventsAfter, type LifecycleReader } from "../lifecycle-routes.ts";
import { type NumberedItems, SharedItems } from "./numbered-items.ts";

import { formatPositions, type Positions, parsePositions } from "./positions.ts";
import { type StreamedState, StreamedStates } from "./states.ts";

/** Topics sent item by item, besides lifecycle events. */
export const numberedTopics = ["rounds", "marks"] as const;
export type NumberedTopic = (typeof numberedTopics)[number];

export interface StreamsOptions {
  /** Responses that are sent whole when they change, by the path of their route. They take no parameters. */
  states: readonly StreamedState[];
  /** Undefined if lifecycle is disabled. */
  events: LifecycleReader["events"] | undefined;
  /** By topic. Undefined if its part is disabled. */
  numbered: Readonly<Record<NumberedTopic, NumberedItems | undefined>>;
  clock: Clock;
}

/** An open stream of server-sent events. */
export interface OpenStream {
  /** Pieces of the response body. The next one is created after the client has read the last. */
  pieces(signal: AbortSignal): AsyncGenerator<string>;
  /** Must be called once, when the response has ended. */
  close(): void;
}

/** What a stream has been sent, besides its positions. */
interface Sent {
  /** The version of each state. */
  states: Map<string, number>;
  /** By topic, the newest id when nothing could be read. */
  unreadable: Map<NumberedTopic, number>;
  /** When `waiting` was last sent, monotonic milliseconds. */
  waitingSentAt: number;
}

/** How often streams poll for changes, milliseconds. */
export const TICK_MS = 500;
const STATE_INTERVAL_MS = 1_000;
const HEARTBEAT_MS = 10_000;
// An event instead of a comment, because browsers do not pass comments to the page, which must know that the agent is
// alive.
const HEARTBEAT = "event: heartbeat\ndata: {}\n\n";
const RECONNECT_MS = 2_000;
/** Maximum number of open streams. Each occupies a connection. */
export const MOST_STREAMS = 16;
const MOST_EVENTS_AT_ONCE = 200;

/**
 * Streams of changes as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 *
 * 1. Lifecycle events, rounds and marks are sent in order, each once. A client that sends the `id` of its last message
 *    resumes after it, also across restarts of the agent. A cursor that has expired, or is from another log, yields a
 *    snapshot. So does a stream opened before the node's pods are known, which is sent `waiting` with the reason until
 *    then.
 * 2. Responses of the API are sent whole: when a stream starts, and when they change.
 * 3. Streams are not buffered; only their positions are kept. A slow client gets later what a fast one gets now.
 * 4. Nothing is read while no stream is open.
 */
export class Streams {
  readonly #options: StreamsOptions;
  readonly #states: StreamedStates;
  readonly #turns: LoopTurns;
  readonly #numbered = new Map<NumberedTopic, SharedItems>();
  #open = 0;

  constructor(options: StreamsOptions) {
    this.#options = options;
    this.#states = new StreamedStates(options.states, options.clock, STATE_INTERVAL_MS);
    this.#turns = new LoopTurns(options.clock);
    for (const topic of numberedTopics) {
      const items = options.numbered[topic];
      if (items) this.#numbered.set(topic, new SharedItems(items));
    }
  }

  /** Number of open streams. */
  get count(): number {
    return this.#open;
  }

  /** The enabled topics. */
  get topics(): string[] {
    const { events } = this.#options;
    return [...(events ? ["events"] : []), ...this.#numbered.keys(), ...this.#states.paths];
  }

  /**
   * Opens a stream. Throws `invalid` for an unknown topic or a malformed cursor, `throttled` if too many are open.
   * @param lastEventId the header with which a browser resumes; overrides the parameter `cursor`
   */
  open(query: URLSearchParams, lastEventId: string | undefined): OpenStream {
    const { topics = "", cursor } = readParameters(streamParameters, query);
    const wanted = this.#wanted(topics);
    const positions = this.#positions(wanted, lastEventId || cursor);
    if (this.#open >= MOST_STREAMS)
      throw new NodekeeperError("throttled", `${this.#open} streams are open, which is the limit`, {
        retryAfterMs: RECONNECT_MS,
      });
    this.#open++;
    return {
      pieces: (signal) => this.#pieces(wanted, positions, signal),
      close: () => {
        this.#open--;
        if (this.#open > 0) return;
        this.#states.clear();
        for (const items of this.#numbered.values()) items.clear();
      },
    };
  }

  #wanted(topics: string): ReadonlySet<string> {
    const known = this.topics;
    if (topics === "") return new Set(known);
    const wanted = topics.split(",");
    const unknown = wanted.find((topic) => !known.includes(topic) && !streamTopics.has(topic));
    if (unknown === undefined) return new Set(wanted.filter((topic) => known.includes(topic)));
    const shown = JSON.stringify(unknown.slice(0, 60));
    throw new NodekeeperError("invalid", `no topic ${shown}; there are: ${known.join(", ")}`);
  }

  #positions(wanted: ReadonlySet<string>, cursor: string | undefined): Positions {
    const { events } = this.#options;
    const given = cursor ? parsePositions(cursor) : undefined;
    const numberOf = (topic: NumberedTopic) =>
      wanted.has(topic) ? (given?.[topic] ?? this.#numbered.get(topic)?.lastId) : undefined;
    return {
      events: events && wanted.has("events") ? (given?.events ?? startOf(events)) : undefined,
      rounds: numberOf("rounds"),
      marks: numberOf("marks"),
    };
  }

  async *#pieces(
    wanted: ReadonlySet<string>,
    positions: Positions,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const { clock } = this.#options;
    const sent: Sent = { states: new Map(), unreadable: new Map(), waitingSentAt: Number.NEGATIVE_INFINITY };
    yield `retry: ${RECONNECT_MS}\nevent: open\nid: ${formatPositions(positions)}\ndata: ${JSON.stringify({ topics: [...wanted] })}\n\n`;
    let sentAt = clock.monotonic();
    while (!signal.aborted) {
      for await (const piece of this.#news(wanted, positions, sent, signal)) {
        yield piece;
        sentAt = clock.monotonic();
      }
      if (clock.monotonic() - sentAt >= HEARTBEAT_MS) {
        yield HEARTBEAT;
        sentAt = clock.monotonic();
      }
      await sleepOrAbort(clock, TICK_MS, signal);
    }
  }

  async *#news(
    wanted: ReadonlySet<string>,
    positions: Positions,
    sent: Sent,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    yield* this.#newEvents(positions, sent, signal);
    for (const topic of numberedTopics) yield* this.#newItems(topic, positions, sent, signal);
    for (const path of this.#states.paths) {
      if (!wanted.has(path)) continue;
      await this.#turns.pass();
      const current = await this.#states.current(path, signal);
      if (!current || sent.states.get(path) === current.version) continue;
      sent.states.set(path, current.version);
      yield `event: ${path}\ndata: ${current.text}\n\n`;
    }
  }

  async *#newEvents(positions: Positions, sent: Sent, signal: AbortSignal): AsyncGenerator<string> {
    const { events, clock } = this.#options;
    const unknown = positions.events && events?.unknown;
    if (unknown) {
      if (clock.monotonic() - sent.waitingSentAt < HEARTBEAT_MS) return;
      sent.waitingSentAt = clock.monotonic();
      const { id, message } = unknown;
      yield `event: waiting\ndata: ${JSON.stringify({ topic: "events", id, message })}\n\n`;
      return;
    }
    while (events && positions.events && !signal.aborted) {
      const { log, sequence } = positions.events;
      if (log === events.id && sequence === events.last) return;
      await this.#turns.pass();
      const { items, position } = eventsAfter(events, positions.events, MOST_EVENTS_AT_ONCE, () => true);
      positions.events = position;
      // One piece, because the position is that of its last item.
      yield items
        .map((item, at) => {
          const id = at === items.length - 1 ? `id: ${formatPositions(positions)}\n` : "";
          return `event: ${item.kind === "event" ? "events" : "snapshot"}\n${id}data: ${JSON.stringify(item)}\n\n`;
        })
        .join("");
    }
  }

  async *#newItems(
    topic: NumberedTopic,
    positions: Positions,
    { unreadable }: Sent,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const items = this.#numbered.get(topic);
    let position = positions[topic];
    if (!items || position === undefined) return;
    // The state directory was replaced, so ids start from 1 again.
    if (position > items.lastId) positions[topic] = position = 0;
    while (position < items.lastId && unreadable.get(topic) !== items.lastId) {
      if (signal.aborted) return;
      await this.#turns.pass();
      // Read before the items: an item added meanwhile is a later one.
      const newest = items.lastId;
      const found = await items.after(position, signal);
      // Items that cannot be read, or are not written yet. Not read again until there is a newer one.
      if (found.length === 0) unreadable.set(topic, newest);
      for (const item of found) {
        position = item.id;
        positions[topic] = position;
        yield `event: ${topic}\nid: ${formatPositions(positions)}\ndata: ${JSON.stringify(item)}\n\n`;
      }
    }
  }
}

// A stream opened before the node's pods are known gets a snapshot.
function startOf(events: LifecycleReader["events"]): LogPosition {
  return events.unknown ? beforeAnyLog : events.position;
}
