import type { ClientHttp2Session } from "node:http2";
import { RawConnection } from "@nodekeeper/core/grpc";
import { type Clock, codeOf, formatDuration, stopped } from "@nodekeeper/core/lib";

// Lists take megabytes every second, and the gRPC library would copy each list into one buffer before decoding it. Here
// chunks are decoded as they arrive, which takes a fifth of the time and memory. Status calls are the most frequent
// calls, and take twice the CPU time in the library. All other calls use the library.

const WINDOW_BYTES = 8 * 1024 * 1024;

export interface RawCallsOptions {
  path: string;
  /** How long a process may take to send HTTP/2 settings on a new connection, in milliseconds. */
  connectDeadlineMs: number;
  clock: Clock;
  onConnected: () => void;
}

/** Consumes a response body in chunks. */
export interface BodyReader<T> {
  push(chunk: Buffer): void;
  end(): T;
}

/**
 * Makes calls to `runtime.v1.RuntimeService` whose responses are decoded as they arrive, on a separate HTTP/2
 * connection.
 */
export class RawCalls implements Disposable {
  readonly #options: RawCallsOptions;
  readonly #connection: RawConnection;
  #made = 0;
  /** Number of calls to which the runtime responded. */
  #answered = 0;
  #isClosed = false;

  constructor(options: RawCallsOptions) {
    this.#options = options;
    this.#connection = new RawConnection(options.path, {
      streamWindowBytes: WINDOW_BYTES,
      sessionWindowBytes: WINDOW_BYTES,
      onSession: (session) => this.#boundConnecting(session),
    });
  }

  /** Number of connections established so far. */
  get made(): number {
    return this.#made;
  }

  /**
   * Makes one call. Throws ClientError with the server's status or `unavailable`, the signal's reason, or the
   * reader's error.
   */
  async call<T>(method: string, request: Uint8Array, reader: BodyReader<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#isClosed) throw stopped("the connection to the runtime is closed");
    using call = this.#connection.call(`runtime.v1.RuntimeService/${method}`, [request]);
    const before = this.#answered;
    try {
      await call.receive((chunk) => reader.push(chunk), signal);
      return reader.end();
    } finally {
      if (call.hasHeaders) this.#answered++;
      // A connection without any response may lead to a process that hangs. The next call opens another one.
      else if (this.#answered === before && codeOf(signal.reason) === "deadline")
        this.#connection.leave(call.session);
    }
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#connection[Symbol.dispose]();
  }

  #boundConnecting(session: ClientHttp2Session): void {
    const { clock, connectDeadlineMs, path, onConnected } = this.#options;
    const deadline = clock.after(connectDeadlineMs, () => {
      const waited = formatDuration(connectDeadlineMs);
      session.destroy(new Error(`the process that listens at ${path} has not spoken HTTP/2 for ${waited}`));
    });
    // The first frame that a server sends. An accepted connection proves nothing: the kernel accepts for a
    // process that hangs.
    session.once("remoteSettings", () => {
      deadline.cancel();
      this.#made++;
      onConnected();
    });
    session.once("close", () => deadline.cancel());
  }
}
