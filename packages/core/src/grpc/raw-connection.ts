import type { ClientHttp2Session } from "node:http2";
import { ClientError, Status } from "nice-grpc";
import { checkSocketPath, messageOf } from "../lib/index.ts";
import { openHttp2Session } from "./http2-session.ts";
import { RawCall } from "./raw-call.ts";

export interface RawConnectionOptions {
  /** Flow control window of each stream, in bytes. Default: HTTP/2's 64 KiB. */
  streamWindowBytes?: number;
  /** Flow control window of the connection, in bytes. Default: that of Node. */
  sessionWindowBytes?: number;
  /** Limit of the session's memory, including data to send, in megabytes. Default: Node's 10. */
  maxSessionMegabytes?: number;
  /** Called for each new connection. */
  onSession?: (session: ClientHttp2Session) => void;
}

/**
 * A gRPC connection to a unix socket for calls whose messages are bytes. The gRPC library would copy large messages for
 * every call. Connects on the first call, and again after a connection ended. If the server exceeds the frame budget
 * (`FrameBudget`), the connection is closed.
 */
export class RawConnection implements Disposable {
  readonly #path: string;
  readonly #options: RawConnectionOptions;
  #session: ClientHttp2Session | undefined;
  /** Connections that `leave` replaced, with calls in progress. */
  readonly #left = new Set<ClientHttp2Session>();
  #isClosed = false;

  /** @param path absolute, at most 107 bytes; otherwise throws `invalid` */
  constructor(path: string, options: RawConnectionOptions = {}) {
    checkSocketPath(path);
    this.#path = path;
    this.#options = options;
  }

  /** Starts a call; see `RawCall`. Throws a ClientError (`UNAVAILABLE`) if that fails. */
  call(method: string, pieces: readonly Uint8Array[]): RawCall {
    if (this.#isClosed) throw new ClientError(method, Status.UNAVAILABLE, "the connection is closed");
    try {
      return new RawCall(this.#open(), method, pieces);
    } catch (error) {
      throw new ClientError(method, Status.UNAVAILABLE, messageOf(error));
    }
  }

  /** Makes the next call open a new connection. Calls in progress can still complete. */
  leave(session: ClientHttp2Session): void {
    if (this.#session === session) this.#session = undefined;
    this.#left.add(session);
    session.close();
  }

  /** Closes the connection. Calls in progress fail with `UNAVAILABLE`. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#session?.destroy();
    this.#session = undefined;
    for (const session of this.#left) session.destroy();
  }

  /** Connection of the next call. Undefined if the next call opens a new one. */
  get session(): ClientHttp2Session | undefined {
    const known = this.#session;
    return known && !known.closed && !known.destroyed ? known : undefined;
  }

  #open(): ClientHttp2Session {
    const known = this.session;
    if (known) return known;
    const { streamWindowBytes, sessionWindowBytes, maxSessionMegabytes, onSession } = this.#options;
    const session = openHttp2Session(this.#path, {
      settings: streamWindowBytes === undefined ? {} : { initialWindowSize: streamWindowBytes },
      maxSessionMegabytes,
    });
    if (sessionWindowBytes !== undefined) {
      session.once("connect", () => {
        if (!session.destroyed) session.setLocalWindowSize(sessionWindowBytes);
      });
    }
    const forget = () => {
      if (this.#session === session) this.#session = undefined;
      this.#left.delete(session);
    };
    session.on("goaway", () => this.leave(session));
    session.on("close", forget);
    // The streams receive the error too. Without a listener, it would crash the process.
    session.on("error", forget);
    this.#session = session;
    onSession?.(session);
    return session;
  }
}
