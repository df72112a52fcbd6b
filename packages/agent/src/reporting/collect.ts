import type { AgentConfiguration } from "@nodekeeper/api/settings";
import { Backoff, type Clock, codeOf, retryPolicies, withDeadline } from "@nodekeeper/core/lib";
import { type ReportMessage, sizeOf } from "./report-message.ts";
import type { ContentSource } from "./source.ts";

export const collectMethods = ["GetReportContent", "ListAndWatchReportContent"] as const;
export type CollectMethod = (typeof collectMethods)[number];

export interface CollectOptions {
  source: ContentSource;
  clock: Clock;
  settings: () => Pick<AgentConfiguration["reporting"], "collectInterval" | "callTimeout">;
  /** Called with each message. Must not throw. */
  onContent: (message: ReportMessage) => void;
  onFailure: (method: CollectMethod, error: unknown) => void;
  /** Called once if the plugin does not implement the optional stream. Its content is then only polled. */
  onNoStream: () => void;
  /** Called for each completed poll with its duration, and for each message of the stream. */
  onExchange: (method: CollectMethod, ms?: number, error?: unknown) => void;
  /** Called after each successful poll and once a stream has been open for 10 s. */
  onWorking: (method: CollectMethod) => void;
  /** Called each time the stream is throttled. */
  onThrottled: () => void;
}

// Limits of a stream per window. Above them, the stream is not read, so HTTP/2 flow control slows down the plugin.
const WINDOW_MS = 100;
const MESSAGES_PER_WINDOW = 200;
const BYTES_PER_WINDOW = 2 * 1024 * 1024;
// The backoff is reset only after the stream has been open this long.
const STEADY_MS = 10_000;

/**
 * Reads one plugin until the signal aborts: its stream, reopened with backoff when it ends, and its current content
 * every `collectInterval`. Errors of the plugin are passed to `onFailure`. Never rejects.
 */
export async function collect(options: CollectOptions, signal: AbortSignal): Promise<void> {
  const received = { count: 0 };
  await Promise.allSettled([watchLoop(options, received, signal), pollLoop(options, received, signal)]);
}

async function watchLoop(
  options: CollectOptions,
  received: { count: number },
  signal: AbortSignal,
): Promise<void> {
  const { source, clock, onContent, onFailure, onNoStream, onExchange, onThrottled, onWorking } = options;
  const backoff = new Backoff(retryPolicies.reportStream);
  while (!signal.aborted) {
    const steady = clock.after(STEADY_MS, () => {
      backoff.reset();
      onWorking("ListAndWatchReportContent");
    });
    try {
      const flow = new Flow(clock);
      for await (const message of source.watch(signal)) {
        received.count++;
        onExchange("ListAndWatchReportContent");
        onContent(message);
        const restMs = flow.restAfter(sizeOf(message));
        if (restMs > 0) {
          onThrottled();
          await clock.sleep(restMs, signal);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (codeOf(error) === "unsupported") return onNoStream();
      onFailure("ListAndWatchReportContent", error);
    } finally {
      steady.cancel();
    }
    await clock.sleep(backoff.next(), signal);
  }
}

async function pollLoop(
  options: CollectOptions,
  received: { count: number },
  signal: AbortSignal,
): Promise<void> {
  const { source, clock, settings, onContent, onFailure, onExchange, onWorking } = options;
  while (!signal.aborted) {
    const { collectInterval, callTimeout } = settings();
    const started = clock.monotonic();
    const before = received.count;
    try {
      const message = await withDeadline(
        clock,
        { ms: callTimeout, name: "GetReportContent" },
        signal,
        (scope) => source.get(scope),
      );
      onExchange("GetReportContent", clock.monotonic() - started);
      onWorking("GetReportContent");
      // Stream messages received since the poll started may be newer than its response.
      if (received.count === before) onContent(message);
    } catch (error) {
      if (signal.aborted) return;
      onExchange("GetReportContent", clock.monotonic() - started, error);
      onFailure("GetReportContent", error);
    }
    await clock.sleep(Math.max(collectInterval - (clock.monotonic() - started), 0), signal);
  }
}

/** Measures the messages and bytes of a stream per window. */
class Flow {
  readonly #clock: Clock;
  #windowStart: number;
  #messages = 0;
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#windowStart = clock.monotonic();
  }

  /** Returns how long to pause reading after a message of this size, in milliseconds. */
  restAfter(bytes: number): number {
    this.#messages++;
    this.#bytes += bytes;
    const windows = Math.max(this.#messages / MESSAGES_PER_WINDOW, this.#bytes / BYTES_PER_WINDOW, 1);
    const restMs = windows * WINDOW_MS - (this.#clock.monotonic() - this.#windowStart);
    if (restMs > 0 && this.#messages < MESSAGES_PER_WINDOW && this.#bytes < BYTES_PER_WINDOW) return 0;
    this.#windowStart = this.#clock.monotonic() + Math.max(restMs, 0);
    this.#messages = 0;
    this.#bytes = 0;
    return restMs;
  }
}
