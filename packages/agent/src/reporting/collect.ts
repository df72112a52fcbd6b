import { Backoff, type Clock, codeOf, retryPolicies, withDeadline } from "@nodekeeper/core/lib";
import { type ReportMessage, sizeOf } from "./report-message.ts";
import type { ContentSource } from "./source.ts";

/** Settings that may change while the agent runs; read anew for each use. Durations in milliseconds. */
export interface CollectSettings {
  collectInterval: number;
  callTimeout: number;
}

export const collectMethods = ["GetReportContent", "ListAndWatchReportContent"] as const;
export type CollectMethod = (typeof collectMethods)[number];

export interface CollectOptions {
  source: ContentSource;
  clock: Clock;
  settings: () => CollectSettings;
  /** Takes a message; must not throw. */
  onContent: (message: ReportMessage) => void;
  onFailure: (method: CollectMethod, error: unknown) => void;
  /** Called when a poll was answered, and when a stream has stayed open for a while. */
  onWorking: (method: CollectMethod) => void;
  /** Called each time a flooding stream is held back. */
  onThrottled: () => void;
}

// A stream may send so much in each window; then its flow control holds the plugin back.
const WINDOW_MS = 100;
const MESSAGES_PER_WINDOW = 200;
const BYTES_PER_WINDOW = 2 * 1024 * 1024;
// A stream that breaks sooner has not recovered, whatever it said before.
const STEADY_MS = 10_000;

/**
 * Reads one plugin until the signal aborts: its stream, opened again with backoff when it ends, and its
 * current content every `collectInterval`. Never throws but for the abort; the plugin's faults go to `onFailure`.
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
  const { source, clock, onContent, onFailure, onThrottled, onWorking } = options;
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
        onContent(message);
        const restMs = flow.restAfter(sizeOf(message));
        if (restMs > 0) {
          onThrottled();
          await clock.sleep(restMs, signal);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      onFailure("ListAndWatchReportContent", error);
      // The plugin does not stream; its content is polled.
      if (codeOf(error) === "unsupported") return;
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
  const { source, clock, settings, onContent, onFailure, onWorking } = options;
  while (!signal.aborted) {
    const { collectInterval, callTimeout } = settings();
    const started = clock.monotonic();
    const before = received.count;
    try {
      const message = await withDeadline(clock, callTimeout, "GetReportContent", signal, (scope) =>
        source.get(scope),
      );
      onWorking("GetReportContent");
      // What the stream brought meanwhile may be newer than this answer.
      if (received.count === before) onContent(message);
    } catch (error) {
      if (signal.aborted) return;
      onFailure("GetReportContent", error);
    }
    await clock.sleep(Math.max(collectInterval - (clock.monotonic() - started), 0), signal);
  }
}

/** Counts what a stream sends in a window of time. */
class Flow {
  readonly #clock: Clock;
  #windowStart: number;
  #messages = 0;
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#windowStart = clock.monotonic();
  }

  /** How long to take no more after a message of this length, milliseconds. */
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
