import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
} from "node:http2";
import { connect } from "node:net";
import { ClientError, Status } from "nice-grpc";
import { checkSocketPath, messageOf } from "../lib/index.ts";
import type { DialOptions } from "./dial-unix.ts";
import { fromGrpcError } from "./grpc-errors.ts";
import { UnaryAnswer } from "./unary-answer.ts";

// Requests wait in the session while the other side does not read; the default of 10 MB is less than two large ones.
const SESSION_MEGABYTES = 64;

/**
 * A gRPC connection to a unix socket for unary calls whose request is given as pieces of bytes. The pieces go to the
 * socket as they are: where many channels send the same ones, they are in memory once, which grpc-js, copying each
 * message for each call, does not do. It connects at the first call, and anew at the first after a connection ended.
 */
export class UnaryChannel {
  readonly #path: string;
  readonly #maxReceiveBytes: number;
  #session: ClientHttp2Session | undefined;
  #isClosed = false;

  /** @param path absolute, at most 107 bytes; otherwise throws `invalid` */
  constructor(path: string, { maxReceiveBytes }: DialOptions) {
    checkSocketPath(path);
    this.#path = path;
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
    const answer = new UnaryAnswer(this.#maxReceiveBytes);
    let stream: ClientHttp2Stream | undefined;
    try {
      if (this.#isClosed) throw new ClientError(method, Status.UNAVAILABLE, "the channel is closed");
      stream = this.#openSession().request({
        ":method": "POST",
        ":path": `/${method}`,
        "content-type": "application/grpc",
        te: "trailers",
      });
      return await exchange(stream, method, pieces, answer, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ClientError) throw fromGrpcError(error);
      throw fromGrpcError(new ClientError(method, Status.UNAVAILABLE, messageOf(error)));
    } finally {
      // Also ends a stream whose answer came before all of the request was read.
      if (stream && !stream.destroyed) stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  /** Ends the connection; calls under way fail with `unavailable`. */
  close(): void {
    this.#isClosed = true;
    this.#session?.destroy();
    this.#session = undefined;
  }

  #openSession(): ClientHttp2Session {
    const known = this.#session;
    if (known && !known.closed && !known.destroyed) return known;
    // The name is for the :authority: servers refuse an empty or path-like one.
    const session = connectHttp2("http://localhost", {
      createConnection: () => connect(this.#path),
      settings: { enablePush: false },
      maxSessionMemory: SESSION_MEGABYTES,
    });
    const forget = () => {
      if (this.#session === session) this.#session = undefined;
    };
    session.on("goaway", forget);
    session.on("close", forget);
    // Each stream is told too; this listener keeps the error from ending the process.
    session.on("error", forget);
    this.#session = session;
    return session;
  }
}

function exchange(
  stream: ClientHttp2Stream,
  method: string,
  pieces: readonly Uint8Array[],
  answer: UnaryAnswer,
  signal: AbortSignal,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    let failure: unknown;
    stream.on("response", (headers) => answer.takeHeaders(headers));
    stream.on("trailers", (trailers) => answer.takeTrailers(trailers));
    stream.on("data", (chunk: Buffer) => {
      if (!answer.takeData(chunk)) stream.close(constants.NGHTTP2_CANCEL);
    });
    stream.on("error", (error) => {
      failure = error;
    });
    stream.on("close", () => {
      signal.removeEventListener("abort", onAbort);
      const result = answer.result(method, failure);
      if (result instanceof Error) reject(result);
      else resolve(result);
    });
    const header = Buffer.alloc(5);
    header.writeUInt32BE(
      pieces.reduce((sum, piece) => sum + piece.length, 0),
      1,
    );
    stream.write(header);
    for (const piece of pieces) stream.write(piece);
    stream.end();
  });
}
