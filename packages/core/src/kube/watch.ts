import { ApiServerUnreachable } from "@nodekeeper/api/errors";
import { type Clock, childScope, messageOf, NodekeeperError } from "../lib/index.ts";
import { type ApiRequest, type Connection, nameOf } from "./connection.ts";
import { errorOfStatusObject } from "./http-errors.ts";
import { LineSplitter } from "./line-splitter.ts";
import { asObject, isRecord, typed } from "./objects.ts";
import { collectionPath } from "./paths.ts";
import { type ApiResource, type WatchEvent, type WatchOptions, watchHeadLength } from "./types.ts";
import { WatchBudget } from "./watch-budget.ts";

/** Maximum size of an event, in bytes: five times etcd's limit, so that only a broken stream exceeds it. */
const LONGEST_LINE = 8 * 1024 * 1024;

// The API server sends bookmarks about once a minute to watches that request them. Three missed ones mean that the
// connection is broken.
export const BOOKMARK_SILENCE_MS = 180_000;

/** The server sent a malformed stream. Events may be lost, so the objects must be listed again. */
export class MalformedStreamError extends NodekeeperError {
  constructor(message: string) {
    super("unavailable", message);
  }
}

/** The server sent an ERROR event. The watch ended, but the connection is intact. */
export class StreamStatusError extends NodekeeperError {
  constructor(error: NodekeeperError) {
    super(error.code, error.message, { id: error.id, retryAfterMs: error.retryAfterMs });
  }
}

/** See KubeApiClient.watch. */
export async function watchOnce(
  connection: Connection,
  clock: Clock,
  resource: ApiResource,
  options: WatchOptions,
): Promise<void> {
  const request = requestOf(resource, options);
  const what = nameOf(request);
  const lines = new LineSplitter(LONGEST_LINE);
  const budget = new WatchBudget(what, clock);
  using scope = childScope(options.signal);
  using silence = new SilenceTimer(clock, options.inactivityMs, (ms) =>
    scope.abort(new ApiServerUnreachable({ problem: `${what}: the server was silent for ${ms} ms` })),
  );
  const listener = {
    onOpen: () => {
      silence.heard();
      options.onOpen?.();
    },
    onChunk: (chunk: Buffer) => {
      silence.heard();
      budget.take(chunk.length);
      for (const line of splitLines(what, lines, chunk)) {
        const known = options.knownVersion?.(line.slice(0, watchHeadLength));
        if (known !== undefined) {
          options.onKnown?.(known);
          continue;
        }
        const event = readEvent(what, resource, line, options.parse);
        if (event.type === "BOOKMARK") silence.allowAtMost(BOOKMARK_SILENCE_MS);
        options.onEvent(event, line.length);
      }
    },
  };
  const { deadlineMs } = options;
  await connection.stream(request, listener, {
    signal: scope.signal,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
  if (lines.rest > 0)
    throw new ApiServerUnreachable({ problem: `${what}: the watch ended in the middle of an event` });
}

function requestOf(resource: ApiResource, options: WatchOptions): ApiRequest {
  return {
    method: "GET",
    path: collectionPath(resource, options.namespace),
    query: {
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: options.resourceVersion,
      timeoutSeconds: options.timeoutSeconds,
      fieldSelector: options.fieldSelector,
      labelSelector: options.labelSelector,
    },
    verb: "watch",
    resource: resource.plural,
  };
}

function* splitLines(what: string, lines: LineSplitter, chunk: Buffer): Generator<string> {
  for (const line of lines.push(chunk)) yield line;
  if (lines.rest > LONGEST_LINE)
    throw new MalformedStreamError(`${what}: an event is longer than ${LONGEST_LINE} bytes`);
}

function readEvent(
  what: string,
  resource: ApiResource,
  line: string,
  parse: (text: string) => unknown = JSON.parse,
): WatchEvent {
  let event: unknown;
  try {
    event = parse(line);
  } catch (error) {
    // Omits the parser's message, which quotes the line: objects must not be logged.
    const reason = messageOf(error).includes("Unexpected end") ? "it ends too early" : "it is not JSON";
    throw new MalformedStreamError(`${what}: an event of ${line.length} characters can't be read: ${reason}`);
  }
  if (!isRecord(event) || !isRecord(event.object))
    throw new MalformedStreamError(`${what}: an event has no object`);
  const { type, object } = event;
  if (type === "ERROR") throw new StreamStatusError(errorOfStatusObject(what, object));
  if (type !== "ADDED" && type !== "MODIFIED" && type !== "DELETED" && type !== "BOOKMARK") {
    throw new MalformedStreamError(
      `${what}: an event has the unknown type ${JSON.stringify(type)?.slice(0, 80)}`,
    );
  }
  return { type, object: typed(resource, asObject(what, object)) };
}

/**
 * Calls `onSilence` if nothing is received for a time. Re-arms its timer only when it fires, so that receiving is
 * cheap.
 */
class SilenceTimer implements Disposable {
  readonly #clock: Clock;
  #longestMs: number;
  readonly #onSilence: (longestMs: number) => void;
  #heardAt: number;
  #timer: { cancel(): void };

  constructor(clock: Clock, longestMs: number, onSilence: (longestMs: number) => void) {
    this.#clock = clock;
    this.#longestMs = longestMs;
    this.#onSilence = onSilence;
    this.#heardAt = clock.monotonic();
    this.#timer = clock.after(longestMs, () => this.#due());
  }

  heard(): void {
    this.#heardAt = this.#clock.monotonic();
  }

  /** Lowers the limit of silence. */
  allowAtMost(ms: number): void {
    if (ms >= this.#longestMs) return;
    this.#longestMs = ms;
    this.#timer.cancel();
    this.#due();
  }

  [Symbol.dispose](): void {
    this.#timer.cancel();
  }

  #due(): void {
    const leftMs = this.#heardAt + this.#longestMs - this.#clock.monotonic();
    if (leftMs <= 0) this.#onSilence(this.#longestMs);
    else this.#timer = this.#clock.after(leftMs, () => this.#due());
  }
}
