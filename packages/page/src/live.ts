import { type StateTopic, stateTopics } from "@nodekeeper/api/http";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { refusalAt } from "./api.ts";
import { type NodeClock, nodeClock } from "./node-clock.ts";

/** A pod lifecycle event. */
export type LifecycleEvent = Extract<ApiAnswers["events"]["items"][number], { kind: "event" }>["event"];
export type Round = ApiAnswers["eviction/rounds"][number];
export type Mark = ApiAnswers["marks"]["items"][number];
export type RoundReadings = ApiAnswers["eviction/readings"]["rounds"][number];

type States = { [Topic in StateTopic]?: ApiAnswers[Topic] };

/**
 * What the agent's stream has sent. Lists start when the page is opened, oldest first; views read the history
 * separately.
 */
export interface Live extends States {
  readonly rounds: Round[];
  readonly marks: Mark[];
  readonly readings: RoundReadings[];
  readonly events: LifecycleEvent[];
  /** When events were last missed, by the node's clock. The list restarts then. */
  missedAt: number | undefined;
  /** Why the agent does not know the node's pods yet. */
  waitingFor?: string | undefined;
  connection: Connection;
}

/**
 * `lost`: the data shown is as of `at`, the time of the last message by the node's clock. `isRefused`: the user must
 * sign in again, beyond loopback.
 */
export type Connection =
  | { state: "opening" }
  | { state: "open" }
  | { state: "lost"; at: number; why: string; isRefused?: boolean };

/** Topics of every view; a view may add more. The agent omits topics of disabled parts. */
const BASE_TOPICS = ["events", "rounds", "marks", "readings", "node", "plugins", "eviction/node"];

// Bounds the page's memory: an hour of readings at the default eviction.syncPeriod, and half an hour of a busy node's
// events.
const MOST_READINGS = 720;
const MOST_ROUNDS = 500;
const MOST_MARKS = 2_000;
const MOST_EVENTS = 10_000;
// The agent sends a message at least every 10 s.
const SILENCE_MS = 25_000;
const RETRY_MS = 2_000;
// The user may sign in in another tab.
const REFUSED_RETRY_MS = 30_000;
const HIDDEN_MS = 10_000;
const BEAT_MS = 1_000;
// A timer this late was suspended, not merely delayed by a busy browser.
const LATE_MS = 5_000;
// Messages that arrive together are rendered once.
const DRAW_EVERY_MS = 200;

/**
 * Follows the agent's stream: keeps `live` up to date and calls `onChange` at most five times a second, only while the
 * page is visible. A connection that ends or is silent is reopened and resumes after the last message. So is a
 * connection after the computer slept or the network was unreachable, because the data is then old even if the
 * connection appears open. A hidden page closes its connection until it is shown, because browsers allow six per host
 * across all tabs.
 */
export class Follower {
  readonly live: Live = {
    rounds: [],
    marks: [],
    readings: [],
    events: [],
    missedAt: undefined,
    connection: { state: "opening" },
  };
  readonly #onChange: () => void;
  readonly #clock: NodeClock;
  #topics: readonly string[] = [];
  #source: EventSource | undefined;
  #cursor = "";
  #heardAt: number;
  #draw: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #hidden: ReturnType<typeof setTimeout> | undefined;
  #beat: ReturnType<typeof setInterval> | undefined;
  /** Wall-clock time of the last beat in the browser. The monotonic clock stops while the computer sleeps. */
  #beatAt = 0;

  /** @param clock the node's clock, which the follower adjusts from the agent's responses */
  constructor(onChange: () => void, clock = nodeClock) {
    this.#onChange = onChange;
    this.#clock = clock;
    this.#heardAt = clock.now();
    document.addEventListener("visibilitychange", () => this.#hideOrShow());
    // Fired when a page frozen by the browser resumes: https://wicg.github.io/page-lifecycle/
    document.addEventListener("resume", () => this.#noticeSleep());
    addEventListener("online", () => this.#renew("the network was unreachable"));
  }

  /** Follows the base topics and these. */
  follow(more: readonly string[]): void {
    const topics = [...BASE_TOPICS, ...more];
    if (this.#source && topics.join() === this.#topics.join()) return;
    this.#topics = topics;
    this.#open();
  }

  #hideOrShow(): void {
    clearTimeout(this.#hidden);
    if (document.visibilityState === "hidden") this.#hidden = setTimeout(() => this.#rest(), HIDDEN_MS);
    else if (this.#beat === undefined) this.#renew("this page was hidden");
    else this.#noticeSleep();
  }

  #noticeSleep(): void {
    const now = Date.now();
    const lateMs = now - this.#beatAt - BEAT_MS;
    this.#beatAt = now;
    if (this.#beat !== undefined && lateMs > LATE_MS) this.#renew("this computer slept");
  }

  /** Reconnects, immediately or when the page is shown. Until the first message, the last known data is shown. */
  #renew(why: string): void {
    if (document.visibilityState === "hidden") {
      this.#rest();
      return;
    }
    this.live.connection = { state: "lost", at: this.#heardAt, why };
    this.#open();
    this.#changed();
  }

  #rest(): void {
    this.#source?.close();
    this.#source = undefined;
    clearTimeout(this.#silence);
    clearTimeout(this.#retry);
    clearInterval(this.#beat);
    this.#beat = undefined;
  }

  #open(): void {
    clearTimeout(this.#retry);
    this.#beatAt = Date.now();
    this.#beat ??= setInterval(() => this.#noticeSleep(), BEAT_MS);
    this.#source?.close();
    const query = new URLSearchParams({ topics: this.#topics.join() });
    if (this.#cursor) query.set("cursor", this.#cursor);
    const source = new EventSource(`api/v1/stream?${query}`);
    this.#source = source;
    source.addEventListener("error", () => {
      if (source !== this.#source) return;
      const isRejected = source.readyState === EventSource.CLOSED;
      // While the stream is rejected again and again, the reason stays.
      if (!isRejected || this.live.connection.state !== "lost") this.#lose("the connection ended");
      if (isRejected) void this.#askWhy(source);
    });
    source.addEventListener("open", (event) => {
      if (!(event instanceof MessageEvent)) void setClock(this.#clock);
    });
    // Data of topics that are no longer followed would become stale.
    this.#on(source, "open", ({ topics }: { topics: readonly string[] }) => {
      for (const name of stateTopics) if (!topics.includes(name)) delete this.live[name];
    });
    this.#on(source, "heartbeat", () => {});
    for (const name of stateTopics) this.#on(source, name, (answer) => (this.live[name] = answer as never));
    this.#on(source, "rounds", (round: Round) => add(this.live.rounds, round, MOST_ROUNDS));
    this.#on(source, "marks", (mark: Mark) => add(this.live.marks, mark, MOST_MARKS));
    // The age of the first message's round is unknown.
    let isFirst = true;
    this.#on(source, "readings", (round: RoundReadings | null) => {
      if (round && !isFirst) this.#clock.take(round.at);
      isFirst = false;
      if (round && round.at !== this.live.readings.at(-1)?.at) add(this.live.readings, round, MOST_READINGS);
    });
    this.#on(source, "events", ({ event }: { event: LifecycleEvent }) =>
      add(this.live.events, event, MOST_EVENTS),
    );
    this.#on(source, "waiting", ({ message }: { message: string }) => {
      this.live.waitingFor = message;
    });
    this.#on(source, "snapshot", () => this.#forget());
    this.#listen();
  }

  // Drops the events, because later ones do not continue them.
  #forget(): void {
    this.live.events.length = 0;
    this.live.missedAt = this.#clock.now();
    this.live.waitingFor = undefined;
  }

  #on(source: EventSource, name: string, take: (data: never) => void): void {
    source.addEventListener(name, (message) => {
      // The browser's own event, which has no data, is also named "open".
      if (source !== this.#source || !(message instanceof MessageEvent)) return;
      if (message.lastEventId) this.#cursor = message.lastEventId;
      take(JSON.parse(message.data) as never);
      this.#heardAt = this.#clock.now();
      this.live.connection = { state: "open" };
      this.#listen();
      this.#changed();
    });
  }

  // If the agent hangs or the network drops the connection, no event is fired.
  #listen(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#lose("the agent is silent"), SILENCE_MS);
  }

  // EventSource does not expose the response, which may be a proxy's. Asks again.
  async #askWhy(source: EventSource): Promise<void> {
    const refusal = await refusalAt(source.url);
    if (source !== this.#source) return;
    if (!refusal) return this.#lose("the connection ended");
    const { status, message } = refusal;
    if (status === 401) return this.#lose("your sign-in has ended", true);
    if (status === 403) return this.#lose(message, true);
    // An agent of another version cannot parse the cursor.
    if (status === 400 && this.#cursor) {
      this.#forget();
      this.#cursor = "";
    }
    this.#lose(
      status === 429
        ? "the agent already serves 16 streams, which is the limit"
        : `stream rejected: ${message}`,
    );
  }

  #lose(why: string, isRefused = false): void {
    this.#source?.close();
    clearTimeout(this.#silence);
    this.live.connection = { state: "lost", at: this.#heardAt, why, isRefused };
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#open(), isRefused ? REFUSED_RETRY_MS : RETRY_MS);
    this.#changed();
  }

  #changed(): void {
    this.#draw ??= setTimeout(() => {
      requestAnimationFrame(() => {
        this.#draw = undefined;
        this.#onChange();
      });
    }, DRAW_EVERY_MS);
  }
}

// The stream reveals the node's clock only if eviction is enabled, and not immediately.
async function setClock(clock: NodeClock): Promise<void> {
  try {
    const { headers } = await fetch(new URL("api/v1/version", document.baseURI));
    clock.takeDate(headers.get("Date"));
  } catch {
    // The connection was lost again, which the stream reports.
  }
}

function add<T>(list: T[], item: T, most: number): void {
  list.push(item);
  if (list.length > most) list.splice(0, list.length - most);
}
