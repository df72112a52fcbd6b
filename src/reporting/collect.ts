import { Backoff, type Clock, codeOf, withDeadline } from "../lib/index.ts";
import type { ContentSource } from "./source.ts";

/** Settings that may change while the agent runs; read anew for each use. Durations in milliseconds. */
export interface CollectSettings {
  collectInterval: number;
  callTimeout: number;
}

export type CollectMethod = "GetReportContent" | "ListAndWatchReportContent";

export interface CollectOptions {
  source: ContentSource;
  clock: Clock;
  settings: () => CollectSettings;
  /** Takes a message; must not throw. */
  onContent: (message: Uint8Array) => void;
  onFailure: (method: CollectMethod, error: unknown) => void;
  /** Called each time a flooding stream is held back. */
  onThrottled: () => void;
}

// A stream may send this many messages in each window; then its flow control holds the plugin back.
const WINDOW_MS = 100;
const MESSAGES_PER_WINDOW = 200;

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
  const { source, clock, onContent, onFailure, onThrottled } = options;
  const backoff = new Backoff({ baseMs: 500, maxMs: 30_000 });
  while (!signal.aborted) {
    try {
      let windowStart = clock.monotonic();
      let inWindow = 0;
      for await (const message of source.watch(signal)) {
        backoff.reset();
        received.count++;
        onContent(message);
        const elapsed = clock.monotonic() - windowStart;
        if (elapsed >= WINDOW_MS) {
          windowStart += elapsed;
          inWindow = 0;
        } else if (++inWindow >= MESSAGES_PER_WINDOW) {
          onThrottled();
          await clock.sleep(WINDOW_MS - elapsed, signal);
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      onFailure("ListAndWatchReportContent", error);
      // The plugin does not stream; its content is polled.
      if (codeOf(error) === "unsupported") return;
    }
    await clock.sleep(backoff.next(), signal);
  }
}

async function pollLoop(
  options: CollectOptions,
  received: { count: number },
  signal: AbortSignal,
): Promise<void> {
  const { source, clock, settings, onContent, onFailure } = options;
  while (!signal.aborted) {
    const { collectInterval, callTimeout } = settings();
    const started = clock.monotonic();
    const before = received.count;
    try {
      const message = await withDeadline(clock, callTimeout, "GetReportContent", signal, (scope) =>
        source.get(scope),
      );
      // What the stream brought meanwhile may be newer than this answer.
      if (received.count === before) onContent(message);
    } catch (error) {
      if (signal.aborted) return;
      onFailure("GetReportContent", error);
    }
    await clock.sleep(Math.max(collectInterval - (clock.monotonic() - started), 0), signal);
  }
}
