import type { ApiAnswers, Frozen } from "@nodekeeper/api/openapi";

/** A finished call to a plugin, or a message that the plugin sent. */
export interface Exchange {
  /** Name of the call, such as "ThresholdMet". */
  call: string;
  /** When it ended, milliseconds since the epoch. */
  at: number;
  /** Undefined for a message of a stream, which has no duration. */
  ms?: number | undefined;
  request?: object | undefined;
  /** The response. Retained until the next exchange of the same call. */
  answer?: object | undefined;
  /** Why the call failed. Undefined if it succeeded. */
  error?: string | undefined;
  /**
   * Whether the call is optional and the plugin does not implement it. There is then no response and no
   * error.
   */
  isUnimplemented?: true;
}

/** The last exchanges between the agent and a plugin. */
export type PluginExchanges = Frozen<ApiAnswers["plugins/exchange"]>;

const MOST_DURATIONS = 60;
const LONGEST_TEXT = 2_000;
const MOST_ITEMS = 20;

/**
 * The last exchanges between the agent and a plugin. `note` stores references and numbers; text is only
 * created by `show`. Of longer lists in a request or response, only the first 20 items are retained, so that
 * megabytes are freed after their round. Items have texts of bounded size, so a log takes a few kilobytes.
 */
export class ExchangeLog {
  readonly #last = new Map<string, Exchange>();
  readonly #durations: PluginExchanges["durations"][number][] = [];
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

function shown({ request, answer, ...rest }: Exchange): PluginExchanges["calls"][number] {
  return {
    ...rest,
    ...(request === undefined ? {} : { request: shownJson(request) }),
    ...(answer === undefined ? {} : { answer: shownJson(answer) }),
  };
}

/** Returns the first 2,000 characters of a value's JSON. */
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

/**
 * Returns the first `most` characters of a value's JSON, without serializing the rest. Truncated text ends in
 * "…". Byte arrays are shown as their length, bigints as numbers.
 */
export function cutJson(value: unknown, most: number): string {
  const writer = new Writer(most);
  writer.write(value);
  return writer.text();
}

class Writer {
  readonly #most: number;
  #text = "";

  constructor(most: number) {
    this.#most = most;
  }

  get #isFull(): boolean {
    return this.#text.length > this.#most;
  }

  text(): string {
    return this.#isFull ? `${this.#text.slice(0, this.#most)}…` : this.#text;
  }

  write(value: unknown): void {
    if (typeof value === "string") this.#text += JSON.stringify(value.slice(0, this.#most + 1));
    else if (typeof value === "bigint") this.#text += String(value);
    else if (value instanceof Uint8Array) this.#text += `"${value.length} bytes"`;
    else if (Array.isArray(value)) this.#items(value);
    else if (typeof value === "object" && value !== null) this.#members(value);
    else this.#text += JSON.stringify(value) ?? "null";
  }

  #items(items: readonly unknown[]): void {
    this.#text += "[";
    for (const [at, item] of items.entries()) {
      if (this.#isFull) return;
      if (at > 0) this.#text += ",";
      this.write(item);
    }
    this.#text += "]";
  }

  #members(object: object): void {
    this.#text += "{";
    let isFirst = true;
    for (const [key, member] of Object.entries(object)) {
      if (this.#isFull) return;
      if (member === undefined) continue;
      this.#text += `${isFirst ? "" : ","}${JSON.stringify(key.slice(0, this.#most + 1))}:`;
      isFirst = false;
      this.write(member);
    }
    this.#text += "}";
  }
}
