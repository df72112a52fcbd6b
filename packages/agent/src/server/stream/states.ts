import { type Clock, SharedWork, withDeadline } from "@nodekeeper/core/lib";
import { HANDLER_DEADLINE_MS, type JsonRoute } from "../api.ts";

/** A route without parameters. */
export type StreamedState = Pick<JsonRoute, "path" | "handle">;

/** A response of the API, and a number that changes with it. */
export interface StateVersion {
  version: number;
  /** As JSON. */
  text: string;
}

/**
 * Responses of the API, read once for all streams that follow them: at most once per `intervalMs`, and only on demand.
 */
export class StreamedStates {
  readonly #reads: ReadonlyMap<string, SharedWork<string>>;
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #last = new Map<string, StateVersion & { readAt: number }>();
  #version = 0;

  constructor(routes: readonly StreamedState[], clock: Clock, intervalMs: number) {
    this.#reads = new Map(
      routes.map(({ path, handle }) => {
        const handler = async (signal: AbortSignal) =>
          JSON.stringify(await handle(new URLSearchParams(), signal));
        const read = (signal: AbortSignal) =>
          withDeadline(clock, { ms: HANDLER_DEADLINE_MS, name: `route ${path}` }, signal, handler);
        return [path, new SharedWork(read)];
      }),
    );
    this.#clock = clock;
    this.#intervalMs = intervalMs;
  }

  get paths(): string[] {
    return [...this.#reads.keys()];
  }

  /** Returns the current response of a path. If it cannot be read now, returns the last one, or undefined. */
  async current(path: string, signal: AbortSignal): Promise<StateVersion | undefined> {
    const had = this.#last.get(path);
    const readAt = this.#clock.monotonic();
    if (had && readAt - had.readAt < this.#intervalMs) return had;
    const text = await this.#read(path, signal);
    // Another stream may have stored the same response meanwhile.
    const last = this.#last.get(path);
    if (text === undefined) return last;
    const version = last?.text === text ? last.version : ++this.#version;
    const current = { version, text, readAt };
    this.#last.set(path, current);
    return current;
  }

  /** Drops the responses. Called when the last stream has ended. */
  clear(): void {
    this.#last.clear();
  }

  async #read(path: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      return await this.#reads.get(path)!.join(signal);
    } catch {
      // The path itself reports the error.
      signal.throwIfAborted();
      return undefined;
    }
  }
}
