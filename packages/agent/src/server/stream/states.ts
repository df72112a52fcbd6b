import { type Clock, SharedWork, withDeadline } from "@nodekeeper/core/lib";
import { HANDLER_DEADLINE_MS, type JsonRoute } from "../api.ts";

/** An answer that takes no parameters. */
export type StreamedState = Pick<JsonRoute, "path" | "handle">;

/** An answer of the API, and a number that changes with it. */
export interface StateVersion {
  version: number;
  /** As JSON. */
  text: string;
}

/**
 * Answers of the API, read once for all streams that follow them: at most once per `intervalMs`, and only while a stream asks.
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
          withDeadline(clock, HANDLER_DEADLINE_MS, `route ${path}`, signal, handler);
        return [path, new SharedWork(read)];
      }),
    );
    this.#clock = clock;
    this.#intervalMs = intervalMs;
  }

  get paths(): string[] {
    return [...this.#reads.keys()];
  }

  /** The current answer of a path; the one before, or undefined, where it can't be read now. */
  async current(path: string, signal: AbortSignal): Promise<StateVersion | undefined> {
    const had = this.#last.get(path);
    const readAt = this.#clock.monotonic();
    if (had && readAt - had.readAt < this.#intervalMs) return had;
    const text = await this.#read(path, signal);
    // Of another stream, perhaps, that waited for the same answer.
    const last = this.#last.get(path);
    if (text === undefined) return last;
    const version = last?.text === text ? last.version : ++this.#version;
    const current = { version, text, readAt };
    this.#last.set(path, current);
    return current;
  }

  /** Frees the answers, when the last stream has ended. */
  clear(): void {
    this.#last.clear();
  }

  async #read(path: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      return await this.#reads.get(path)!.join(signal);
    } catch {
      // The path itself answers the error.
      signal.throwIfAborted();
      return undefined;
    }
  }
}
