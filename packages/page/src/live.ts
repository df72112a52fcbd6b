import { type ApiAnswers, ask, Refusal } from "./api.ts";
import { type NodeClock, nodeClock } from "./node-clock.ts";

/** An event of the log of pod lifecycle events. */
export type LifecycleEvent = Extract<ApiAnswers["events"]["items"][number], { kind: "event" }>["event"];
export type Round = ApiAnswers["eviction/rounds"][number];
export type Mark = ApiAnswers["marks"]["items"][number];
export type RoundReadings = ApiAnswers["eviction/readings"]["rounds"][number];

/** What the agent's stream has sent. Lists are those since the page was opened, oldest first; history is asked for by views. */
export interface Live {
  node?: ApiAnswers["node"];
  plugins?: ApiAnswers["plugins"];
  objects?: ApiAnswers["objects"];
  devices?: ApiAnswers["devices"];
  claims?: ApiAnswers["claims"];
  "eviction/node"?: ApiAnswers["eviction/node"];
  "eviction/budgets"?: ApiAnswers["eviction/budgets"];
  "eviction/candidates"?: ApiAnswers["eviction/candidates"];
  readonly rounds: Round[];
  readonly marks: Mark[];
  readonly readings: RoundReadings[];
  readonly events: LifecycleEvent[];
  /** When events were missed last, by the node's clock: their list starts again. */
  missedAt: number | undefined;
  connection: Connection;
}

/**
 * `lost`: what is shown is as of `at`, when the last message came, by the node's clock. `isRefused`: the user has to sign in
 * again, beyond loopback.
 */
export type Connection =
  | { state: "opening" }
  | { state: "open" }
  | { state: "lost"; at: number; why: string; isRefused?: boolean };

/** What every view has; a view may name more. Topics of parts that are off are left out by the agent. */
const BASE_TOPICS = ["events", "rounds", "marks", "readings", "node", "plugins", "eviction/node"];

const STATES = [
  "node",
  "plugins",
  "objects",
  "devices",
  "claims",
  "eviction/node",
  "eviction/budgets",
  "eviction/candidates",
] as const;

// Bounds the page's memory: ten minutes at the default period, and half an hour of a busy node.
const MOST_READINGS = 720;
const MOST_ROUNDS = 500;
const MOST_MARKS = 2_000;
const MOST_EVENTS = 10_000;
// The agent sends something at least every 10 s.
const SILENCE_MS = 25_000;
const RETRY_MS = 2_000;
// The user may sign in in another tab.
const REFUSED_RETRY_MS = 30_000;
const HIDDEN_MS = 10_000;
const BEAT_MS = 1_000;
// A timer that is later than that was held up by more than a busy browser.
const LATE_MS = 5_000;
// Several messages that come together are drawn once.
const DRAW_EVERY_MS = 200;

/**
 * Follows the agent's stream: keeps `live` up to date, and calls `onChange` at most five times a second, and while the
 * page is visible only. A connection that ends, or is silent, is made again, and continues after the last message; so is one of
 * a computer that slept, or whose network was unreachable: what is known is old then, however alive the connection looks. A hidden
 * page gives its connection up until it is shown: a browser makes six to a host, for all its tabs together.
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
  /** When the last beat was, by the browser's wall clock: the other one stands still while the computer sleeps. */
  #beatAt = 0;

  /** @param clock the node's clock, which the follower sets by the agent's answers */
  constructor(onChange: () => void, clock = nodeClock) {
    this.#onChange = onChange;
    this.#clock = clock;
    this.#heardAt = clock.now();
    document.addEventListener("visibilitychange", () => this.#hideOrShow());
    // https://wicg.github.io/page-lifecycle/: of a page that the browser froze.
    document.addEventListener("resume", () => this.#noticeSleep());
    addEventListener("online", () => this.#renew("the network was unreachable"));
  }

  /** Follows what all views have, and these topics. */
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

  /** Connects again, at once or when it is shown. Until the first message, what is shown is of the last one. */
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
      if (source.readyState !== EventSource.CLOSED) return this.#lose("the connection ended");
      // By an answer: too many streams, or a cursor that an agent of another version does not read.
      if (this.#cursor) this.#forget();
      this.#cursor = "";
      this.#lose("the agent refuses the stream; it serves 16 at most, so close other pages of this node");
      void this.#askWhy(source);
    });
    source.addEventListener("open", (event) => {
      if (!(event instanceof MessageEvent)) void setClock(this.#clock);
    });
    this.#on(source, "open", () => {});
    this.#on(source, "heartbeat", () => {});
    for (const name of STATES) this.#on(source, name, (answer) => (this.live[name] = answer as never));
    this.#on(source, "rounds", (round: Round) => add(this.live.rounds, round, MOST_ROUNDS));
    this.#on(source, "marks", (mark: Mark) => add(this.live.marks, mark, MOST_MARKS));
    // Of the first it is not known how long ago its round was.
    let isFirst = true;
    this.#on(source, "readings", (round: RoundReadings | null) => {
      if (round && !isFirst) this.#clock.take(round.at);
      isFirst = false;
      if (round && round.at !== this.live.readings.at(-1)?.at) add(this.live.readings, round, MOST_READINGS);
    });
    this.#on(source, "events", ({ event }: { event: LifecycleEvent }) =>
      add(this.live.events, event, MOST_EVENTS),
    );
    this.#on(source, "snapshot", () => this.#forget());
    this.#listen();
  }

  // Events were missed: what was known is not continued.
  #forget(): void {
    this.live.events.length = 0;
    this.live.missedAt = this.#clock.now();
  }

  #on(source: EventSource, name: string, take: (data: never) => void): void {
    source.addEventListener(name, (message) => {
      // The browser's own event, which has no data, has the name "open" too.
      if (source !== this.#source || !(message instanceof MessageEvent)) return;
      if (message.lastEventId) this.#cursor = message.lastEventId;
      take(JSON.parse(message.data) as never);
      this.#heardAt = this.#clock.now();
      this.live.connection = { state: "open" };
      this.#listen();
      this.#changed();
    });
  }

  // An agent that hangs, or a network that lost the connection, ends nothing.
  #listen(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#lose("the agent is silent"), SILENCE_MS);
  }

  // A stream does not show the status of its answer.
  async #askWhy(source: EventSource): Promise<void> {
    try {
      await ask("version");
    } catch (error) {
      if (source !== this.#source || !(error instanceof Refusal)) return;
      if (error.status === 401) this.#lose("your sign-in has ended", true);
      if (error.status === 403) this.#lose(error.message, true);
    }
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

// The stream shows the node's clock where eviction is on only, and not at once.
async function setClock(clock: NodeClock): Promise<void> {
  try {
    const { headers } = await fetch(new URL("api/v1/version", document.baseURI));
    clock.takeDate(headers.get("Date"));
  } catch {
    // The connection is lost again, which the stream shows.
  }
}

function add<T>(list: T[], item: T, most: number): void {
  list.push(item);
  if (list.length > most) list.splice(0, list.length - most);
}
