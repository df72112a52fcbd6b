import { type Clock, LoopTurns, NodekeeperError } from "@nodekeeper/core/lib";
import { readParameters } from "../contract/parameters.ts";
import { streamParameters, streamTopics } from "../contract/stream.ts";
import { eventsAfter, type LifecycleReader } from "../lifecycle-routes.ts";
import { type NumberedItems, SharedItems } from "./numbered-items.ts";
import { formatPositions, type Positions, parsePositions } from "./positions.ts";
import { type StreamedState, StreamedStates } from "./states.ts";

/** Topics besides lifecycle events that are sent item by item. */
export const numberedTopics = ["rounds", "marks"] as const;
export type NumberedTopic = (typeof numberedTopics)[number];

export interface StreamsOptions {
  /** Answers that are sent whole when they change, by the path of their route. They take no parameters. */
  states: readonly StreamedState[];
  /** Undefined where lifecycle is off. */
  events: LifecycleReader["events"] | undefined;
  /** By topic; undefined where its part is off. */
  numbered: Readonly<Record<NumberedTopic, NumberedItems | undefined>>;
  clock: Clock;
  /** How many streams may be open at a time. Default: 16. */
  mostStreams?: number;
}

/** An open stream of server-sent events. */
export interface OpenStream {
  /** Pieces of the answer's body. The next one is made when the client has taken the last. */
  pieces(signal: AbortSignal): AsyncGenerator<string>;
  /** To be called once, when the answer has ended. */
  close(): void;
}

/** How often streams look for what is new, milliseconds. */
export const TICK_MS = 500;
const STATE_INTERVAL_MS = 1_000;
const HEARTBEAT_MS = 10_000;
// An event and not a comment, which a browser does not pass on to the page: it must know that the agent is there.
const HEARTBEAT = "event: heartbeat\ndata: {}\n\n";
const RECONNECT_MS = 2_000;
const MOST_STREAMS = 16;
const MOST_EVENTS_AT_ONCE = 200;

/**
 * Streams of what changes, as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 *
 * 1. Lifecycle events, rounds and marks are sent in order, each once; a client that sends the `id` of its last message continues
 *    after it, also across restarts of the agent. A cursor that has expired, or is of another log, yields a snapshot.
 * 2. Answers of the API are sent whole: when a stream starts, and when they change.
 * 3. Nothing is kept for a stream but its positions: a slow client gets later what a fast one gets now.
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

  /** How many streams are open. */
  get count(): number {
    return this.#open;
  }

  /** The topics whose parts are on. */
  get topics(): string[] {
    const { events } = this.#options;
    return [...(events ? ["events"] : []), ...this.#numbered.keys(), ...this.#states.paths];
  }

  /**
   * Opens a stream. Throws `invalid` for an unknown topic or a malformed cursor, `throttled` where too many are open.
   * @param lastEventId the header with which a browser continues; it overrides the parameter `cursor`
   */
  open(query: URLSearchParams, lastEventId: string | undefined): OpenStream {
    const { topics = "", cursor } = readParameters(streamParameters, query);
    const wanted = this.#wanted(topics);
    const positions = this.#positions(wanted, lastEventId || cursor);
    const { mostStreams = MOST_STREAMS } = this.#options;
    if (this.#open >= mostStreams)
      throw new NodekeeperError(
        "throttled",
        `${this.#open} streams are open, the most that the agent serves`,
        {
          retryAfterMs: RECONNECT_MS,
        },
      );
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
      events: events && wanted.has("events") ? (given?.events ?? events.position) : undefined,
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
    const sent = new Map<string, number>();
    const unreadable = new Map<NumberedTopic, number>();
    yield `retry: ${RECONNECT_MS}\nevent: open\nid: ${formatPositions(positions)}\ndata: ${JSON.stringify({ topics: [...wanted] })}\n\n`;
    let sentAt = clock.monotonic();
    while (!signal.aborted) {
      for await (const piece of this.#news(wanted, positions, { sent, unreadable }, signal)) {
        yield piece;
        sentAt = clock.monotonic();
      }
      if (clock.monotonic() - sentAt >= HEARTBEAT_MS) {
        yield HEARTBEAT;
        sentAt = clock.monotonic();
      }
      await clock.sleep(TICK_MS, signal).catch(() => {});
    }
  }

  async *#news(
    wanted: ReadonlySet<string>,
    positions: Positions,
    { sent, unreadable }: { sent: Map<string, number>; unreadable: Map<NumberedTopic, number> },
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    yield* this.#newEvents(positions, signal);
    for (const topic of numberedTopics) yield* this.#newItems(topic, positions, unreadable, signal);
    for (const path of this.#states.paths) {
      if (!wanted.has(path)) continue;
      await this.#turns.pass();
      const current = await this.#states.current(path, signal);
      if (!current || sent.get(path) === current.version) continue;
      sent.set(path, current.version);
      yield `event: ${path}\ndata: ${current.text}\n\n`;
    }
  }

  async *#newEvents(positions: Positions, signal: AbortSignal): AsyncGenerator<string> {
    const { events } = this.#options;
    while (events && positions.events && !signal.aborted) {
      const { log, sequence } = positions.events;
      if (log === events.id && sequence === events.last) return;
      await this.#turns.pass();
      const { items, position } = eventsAfter(events, positions.events, MOST_EVENTS_AT_ONCE, () => true);
      positions.events = position;
      // One piece: the position is that of its last item.
      yield items
        .map((item, at) => {
          const id = at === items.length - 1 ? `id: ${formatPositions(positions)}\n` : "";
          return `event: ${item.kind === "event" ? "events" : "snapshot"}\n${id}data: ${JSON.stringify(item)}\n\n`;
        })
        .join("");
    }
  }

  // `unreadable`: the newest id at which nothing could be read, by topic.
  async *#newItems(
    topic: NumberedTopic,
    positions: Positions,
    unreadable: Map<NumberedTopic, number>,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const items = this.#numbered.get(topic);
    let position = positions[topic];
    if (!items || position === undefined) return;
    // Of a state directory that was replaced: its items count from 1 again.
    if (position > items.lastId) positions[topic] = position = 0;
    while (position < items.lastId && unreadable.get(topic) !== items.lastId) {
      if (signal.aborted) return;
      await this.#turns.pass();
      // Before it is read: one that comes meanwhile is another.
      const newest = items.lastId;
      const found = await items.after(position, signal);
      // Items that can't be read, or are not written yet: not read again until there is another.
      if (found.length === 0) unreadable.set(topic, newest);
      for (const item of found) {
        position = item.id;
        positions[topic] = position;
        yield `event: ${topic}\nid: ${formatPositions(positions)}\ndata: ${JSON.stringify(item)}\n\n`;
      }
    }
  }
}
