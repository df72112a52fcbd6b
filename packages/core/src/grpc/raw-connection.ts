import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { ClientError, Status } from "nice-grpc";
import { checkSocketPath, messageOf } from "../lib/index.ts";
import { RawCall } from "./raw-call.ts";

export interface RawConnectionOptions {
  /** What the server may send of one answer before it hears that it was read, bytes. Default: HTTP/2's 64 KiB. */
  streamWindowBytes?: number;
  /** The same of all answers together. */
  sessionWindowBytes?: number;
  /** What may wait in memory to be sent, megabytes. Default: Node's 10. */
  maxSessionMegabytes?: number;
  /** Called for each connection that is started. */
  onSession?: (session: ClientHttp2Session) => void;
}

/**
 * A gRPC connection to a unix socket for calls whose messages are bytes, where gRPC's library would copy large ones
 * once for each call. It connects at the first call, and again at the first one after a connection ended.
 */
export class RawConnection implements Disposable {
  readonly #path: string;
  readonly #options: RawConnectionOptions;
  #session: ClientHttp2Session | undefined;
  #isClosed = false;

  /** @param path absolute, at most 107 bytes; otherwise throws `invalid` */
  constructor(path: string, options: RawConnectionOptions = {}) {
    checkSocketPath(path);
    this.#path = path;
    this.#options = options;
  }

  /** Starts a call: see `RawCall`. Throws a ClientError, `UNAVAILABLE`, where none can be made. */
  call(method: string, pieces: readonly Uint8Array[]): RawCall {
    if (this.#isClosed) throw new ClientError(method, Status.UNAVAILABLE, "the connection is closed");
    try {
      return new RawCall(this.#open(), method, pieces);
    } catch (error) {
      throw new ClientError(method, Status.UNAVAILABLE, messageOf(error));
    }
  }

  /** The next call makes another connection. Calls under way may still be answered. */
  leave(session: ClientHttp2Session): void {
    if (this.#session === session) this.#session = undefined;
    session.close();
  }

  /** Ends the connection: calls under way fail with `UNAVAILABLE`. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#session?.destroy();
    this.#session = undefined;
  }

  /** That of the next call; undefined where the next call makes one. */
  get session(): ClientHttp2Session | undefined {
    const known = this.#session;
    return known && !known.closed && !known.destroyed ? known : undefined;
  }

  #open(): ClientHttp2Session {
    const known = this.session;
    if (known) return known;
    const { streamWindowBytes, sessionWindowBytes, maxSessionMegabytes, onSession } = this.#options;
    // The name is for the :authority: servers refuse an empty or path-like one.
    const session = connectHttp2("http://localhost", {
      createConnection: () => connect(this.#path),
      settings: {
        enablePush: false,
        ...(streamWindowBytes === undefined ? {} : { initialWindowSize: streamWindowBytes }),
      },
      ...(maxSessionMegabytes === undefined ? {} : { maxSessionMemory: maxSessionMegabytes }),
    });
    if (sessionWindowBytes !== undefined) {
      session.once("connect", () => {
        if (!session.destroyed) session.setLocalWindowSize(sessionWindowBytes);
      });
    }
    const forget = () => {
      if (this.#session === session) this.#session = undefined;
    };
    session.on("goaway", () => this.leave(session));
    session.on("close", forget);
    // Each stream gets the error too; this listener keeps it from ending the process.
    session.on("error", forget);
    this.#session = session;
    onSession?.(session);
    return session;
  }
}
