import type { ClientHttp2Session } from "node:http2";
import { ClientError, Status } from "nice-grpc";
import { codeOf } from "../lib/index.ts";
import type { DialOptions } from "./dial-unix.ts";
import { fromGrpcError } from "./grpc-errors.ts";
import { HEADER_BYTES } from "./raw-call.ts";
import { RawConnection } from "./raw-connection.ts";

// Requests wait in the session while the server does not read; the default of 10 MB is less than two large ones.
const SESSION_MEGABYTES = 64;

/**
 * A gRPC connection to a unix socket for unary calls whose request is given as pieces of bytes. The pieces go to the
 * socket as they are: where many channels send the same ones, they are in memory once, which grpc-js, copying each
 * message for each call, does not do. It connects at the first call, and again at the first after a connection ended.
 */
export class UnaryChannel {
  readonly #connection: RawConnection;
  readonly #maxReceiveBytes: number;
  /** Methods that were answered with UNIMPLEMENTED, with the connection of the last such answer. */
  readonly #unimplemented = new Map<string, ClientHttp2Session>();

  /** @param path absolute, at most 107 bytes; otherwise throws `invalid` */
  constructor(path: string, { maxReceiveBytes }: DialOptions) {
    this.#connection = new RawConnection(path, { maxSessionMegabytes: SESSION_MEGABYTES });
    this.#maxReceiveBytes = maxReceiveBytes;
  }

  /**
   * One call, answered with the encoded message. The caller sets a deadline by the signal, whose reason is thrown.
   * What fails otherwise is a NodekeeperError as of `fromGrpcError`.
   * @param method "package.Service/Method"
   * @param pieces the encoded request; must not change before the call has ended
   */
  async call(method: string, pieces: readonly Uint8Array[], signal: AbortSignal): Promise<Uint8Array> {
    signal.throwIfAborted();
    const chunks: Buffer[] = [];
    let received = 0;
    let session: ClientHttp2Session | undefined;
    try {
      using call = this.#connection.call(method, pieces);
      session = call.session;
      await call.receive((chunk) => {
        received += chunk.length;
        if (received > this.#maxReceiveBytes + HEADER_BYTES) throw tooLarge(method, this.#maxReceiveBytes);
        chunks.push(chunk);
      }, signal);
      return messageIn(Buffer.concat(chunks), method);
    } catch (error) {
      signal.throwIfAborted();
      const failure = fromGrpcError(error);
      if (session && codeOf(failure) === "unsupported") this.#unimplemented.set(method, session);
      throw failure;
    }
  }

  /**
   * Whether the server has answered UNIMPLEMENTED to this method on the connection that the next call would use. Over
   * another connection another version of the server may be reached.
   */
  isUnimplemented(method: string): boolean {
    const { session } = this.#connection;
    return session !== undefined && this.#unimplemented.get(method) === session;
  }

  /** Ends the connection; calls under way fail with `unavailable`. */
  close(): void {
    this.#connection[Symbol.dispose]();
  }
}

function tooLarge(method: string, limit: number): ClientError {
  return new ClientError(method, Status.RESOURCE_EXHAUSTED, `the answer is larger than ${limit} bytes`);
}

// The client has offered no compression to the server.
function messageIn(body: Buffer, method: string): Uint8Array {
  const isWhole =
    body.length >= HEADER_BYTES && body[0] === 0 && body.readUInt32BE(1) === body.length - HEADER_BYTES;
  if (isWhole) return body.subarray(HEADER_BYTES);
  throw new ClientError(method, Status.INTERNAL, "the answer is not one whole message");
}
