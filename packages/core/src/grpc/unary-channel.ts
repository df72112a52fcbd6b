import type { ClientHttp2Session } from "node:http2";
import { codeOf } from "../lib/index.ts";
import type { DialOptions } from "./dial-unix.ts";
import { fromGrpcError } from "./grpc-errors.ts";
import { RawConnection } from "./raw-connection.ts";
import { UnaryResponse } from "./unary-response.ts";

// Requests are buffered in the session while the server does not read. Node's default of 10 MB is less than two large
// ones.
const SESSION_MEGABYTES = 64;

/**
 * A gRPC connection to a unix socket for unary calls whose requests are given as pieces of bytes. The pieces are
 * written without copies, so that channels that send the same ones share their memory; grpc-js copies each message for
 * each call. Connects on the first call, and again after a connection ended.
 */
export class UnaryChannel {
  readonly #connection: RawConnection;
  readonly #maxReceiveBytes: number;
  /** Methods to which the server responded with UNIMPLEMENTED, and the connection of the last such response. */
  readonly #unimplemented = new Map<string, ClientHttp2Session>();

  /** @param path absolute, at most 107 bytes; otherwise throws `invalid` */
  constructor(path: string, { maxReceiveBytes }: DialOptions) {
    this.#connection = new RawConnection(path, { maxSessionMegabytes: SESSION_MEGABYTES });
    this.#maxReceiveBytes = maxReceiveBytes;
  }

  /**
   * Calls a method and returns the encoded response. The signal provides the deadline; its reason is thrown. Other
   * failures are NodekeeperErrors (see `fromGrpcError`).
   * @param method "package.Service/Method"
   * @param pieces encoded request; must not change until the call ends
   */
  async call(method: string, pieces: readonly Uint8Array[], signal: AbortSignal): Promise<Uint8Array> {
    signal.throwIfAborted();
    const response = new UnaryResponse(method, this.#maxReceiveBytes);
    let session: ClientHttp2Session | undefined;
    try {
      using call = this.#connection.call(method, pieces);
      session = call.session;
      await call.receive((chunk) => response.push(chunk), signal);
      return response.end();
    } catch (error) {
      signal.throwIfAborted();
      const failure = fromGrpcError(error);
      if (session && codeOf(failure) === "unsupported") this.#unimplemented.set(method, session);
      throw failure;
    }
  }

  /**
   * Returns whether the server responded with UNIMPLEMENTED to this method on the connection that the next call would
   * use. A new connection may reach a different version of the server.
   */
  isUnimplemented(method: string): boolean {
    const { session } = this.#connection;
    return session !== undefined && this.#unimplemented.get(method) === session;
  }

  /** Closes the connection. Calls in progress fail with `unavailable`. */
  close(): void {
    this.#connection[Symbol.dispose]();
  }
}
