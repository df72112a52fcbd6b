import { streamMessages } from "@nodekeeper/core/grpc";
import {
  type Clock,
  childScope,
  LatestValue,
  NodekeeperError,
  type ScopedSignal,
  withDeadline,
} from "@nodekeeper/core/lib";

const MOST_BYTES = 64 * 1024 * 1024;

export interface WatchOptions<T> {
  endpoint: string;
  /** "package.Service/Method" */
  method: string;
  request: Uint8Array;
  /** Decodes a message. */
  read: (bytes: Uint8Array) => T;
  clock: Clock;
}

/** A stream of the driver and its latest message. */
export class Watch<T> implements Disposable {
  readonly #options: WatchOptions<T>;
  readonly #scope: ScopedSignal;
  readonly #latest = new LatestValue<T>();

  constructor(options: WatchOptions<T>, signal: AbortSignal) {
    this.#options = options;
    this.#scope = childScope(signal);
    this.#follow().catch((error) => this.#latest.fail(error));
  }

  /**
   * Returns the latest message with a number above `seen`. Waits for it for at most `ms` milliseconds. Throws
   * `deadline`, or the error that ended the stream.
   */
  async after(seen: number, ms: number): Promise<{ number: number; value: T }> {
    const { clock, method } = this.#options;
    return await withDeadline(clock, { ms, name: method }, this.#scope.signal, (signal) =>
      this.#latest.after(seen, signal),
    );
  }

  /** Closes the connection. */
  [Symbol.dispose](): void {
    this.#scope.abort();
    this.#scope.release();
  }

  async #follow(): Promise<void> {
    const { endpoint, method, request, read } = this.#options;
    const call = { method, request };
    for await (const bytes of streamMessages(
      endpoint,
      call,
      { maxReceiveBytes: MOST_BYTES },
      this.#scope.signal,
    ))
      this.#latest.set(read(bytes));
    throw new NodekeeperError("unavailable", `${method}: the driver ended the stream`);
  }
}
