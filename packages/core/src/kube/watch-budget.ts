import { WatchOverflow } from "@nodekeeper/api/errors";
import { type Clock, type NodekeeperError, TokenBucket } from "../lib/index.ts";
import type { WatchEvent } from "./types.ts";

/** Burst limit of one watch, in bytes. */
export const WATCH_BYTES_AT_ONCE = 16 * 1024 * 1024;
/** Sustained limit of one watch, in bytes per second: about a hundred times the need of a busy node's pods. */
export const WATCH_BYTES_PER_SECOND = 4 * 1024 * 1024;
/** Maximum size of the objects that watches may add to a list before the objects are listed again, in bytes. */
export const WATCHED_BYTES = 32 * 1024 * 1024;

/** Limits the data received over one watch connection. */
export class WatchBudget {
  readonly #what: string;
  readonly #bytes: TokenBucket;

  constructor(what: string, clock: Clock) {
    this.#what = what;
    this.#bytes = new TokenBucket(clock, { perSecond: WATCH_BYTES_PER_SECOND, burst: WATCH_BYTES_AT_ONCE });
  }

  /** Throws `exhausted` if the server exceeded the limits. */
  take(bytes: number): void {
    if (this.#bytes.tryTake(bytes)) return;
    throw tooMuch(
      `${this.#what}: the server sent more than ${WATCH_BYTES_AT_ONCE} bytes at once or ${WATCH_BYTES_PER_SECOND} bytes a second`,
    );
  }
}

/** Limits the objects that watches add to a list. */
export class WatchedObjects {
  readonly #what: string;
  readonly #sizes = new Map<string, number>();
  #bytes = 0;

  constructor(what: string) {
    this.#what = what;
  }

  /** Resets the count after the objects were listed again. */
  clear(): void {
    this.#sizes.clear();
    this.#bytes = 0;
  }

  /** Counts an event. Throws `exhausted` if its object exceeds the limit. @param bytes size of the event */
  take({ type, object }: WatchEvent, bytes: number): void {
    if (type === "BOOKMARK") return;
    const { namespace = "", name = "" } = object.metadata;
    const key = `${namespace}/${name}`;
    this.#bytes -= this.#sizes.get(key) ?? 0;
    this.#sizes.delete(key);
    if (type === "DELETED") return;
    if (this.#bytes + bytes > WATCHED_BYTES)
      throw tooMuch(`${this.#what}: the server added objects of more than ${WATCHED_BYTES} bytes`);
    this.#sizes.set(key, bytes);
    this.#bytes += bytes;
  }
}

function tooMuch(message: string): NodekeeperError {
  return new WatchOverflow({ problem: message });
}
