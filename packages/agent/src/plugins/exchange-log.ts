import { cutJson } from "./cut-json.ts";

/** A call to a plugin that has ended, or a message that it sent. */
export interface Exchange {
  /** "ThresholdMet". */
  call: string;
  /** Wall milliseconds of its end. */
  at: number;
  /** Undefined for a message of a stream, which has no duration. */
  ms?: number | undefined;
  request?: object | undefined;
  /** What it answered; kept until the next exchange of the same call. */
  answer?: object | undefined;
  /** Why it failed; undefined where it did not. */
  error?: string | undefined;
  /** True where the plugin does not implement the call, which is optional. It has no answer then, and did not fail. */
  isUnimplemented?: true;
}

/** An exchange as text: request and answer are JSON of which at most 2,000 characters are left. */
export interface ShownExchange extends Omit<Exchange, "request" | "answer"> {
  request?: string;
  answer?: string;
}

/** The duration of a call. */
export interface CallDuration {
  call: string;
  /** Wall milliseconds of its end. */
  at: number;
  ms: number;
  ok: boolean;
}

/** What a plugin and the agent exchanged last. */
export interface PluginExchanges {
  /** The last of each call, the newest first. */
  calls: ShownExchange[];
  /** The last 60 calls, oldest first. */
  durations: CallDuration[];
}

const MOST_DURATIONS = 60;
const LONGEST_TEXT = 2_000;
const MOST_ITEMS = 20;

/**
 * What a plugin and the agent exchanged last. Noting an exchange keeps references and numbers; text is made when it is
 * asked for. Of a longer list in a request or an answer the first 20 items are kept, so that one of megabytes is freed with
 * its round: items have bounded texts, so a log takes some kilobytes.
 */
export class ExchangeLog {
  readonly #last = new Map<string, Exchange>();
  readonly #durations: CallDuration[] = [];
  #next = 0;

  note(exchange: Exchange): void {
    const { call, at, ms, request, answer, error } = exchange;
    this.#last.set(call, {
      ...exchange,
      request: request && withShortLists(request),
      answer: answer && withShortLists(answer),
    });
    if (ms === undefined) return;
    this.#durations[this.#next] = { call, at, ms, ok: error === undefined };
    this.#next = (this.#next + 1) % MOST_DURATIONS;
  }

  show(): PluginExchanges {
    return {
      calls: [...this.#last.values()].sort((a, b) => b.at - a.at).map(shown),
      durations: [...this.#durations.slice(this.#next), ...this.#durations.slice(0, this.#next)],
    };
  }
}

function shown({ request, answer, ...rest }: Exchange): ShownExchange {
  return {
    ...rest,
    ...(request === undefined ? {} : { request: shownJson(request) }),
    ...(answer === undefined ? {} : { answer: shownJson(answer) }),
  };
}

/** A value as JSON, at most 2,000 characters of it. */
export function shownJson(value: unknown): string {
  return cutJson(value, LONGEST_TEXT);
}

function withShortLists(message: object): object {
  const isLong = (value: unknown): value is unknown[] => Array.isArray(value) && value.length > MOST_ITEMS;
  if (!Object.values(message).some(isLong)) return message;
  const entries = Object.entries(message).flatMap(([key, value]): [string, unknown][] =>
    isLong(value)
      ? [
          [key, value.slice(0, MOST_ITEMS)],
          [`${key} omitted`, value.length - MOST_ITEMS],
        ]
      : [[key, value]],
  );
  return Object.fromEntries(entries);
}
