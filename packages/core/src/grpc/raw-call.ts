import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { CallStatus } from "./call-status.ts";

/** Size of the prefix of each gRPC message: the compression flag and the length. */
export const HEADER_BYTES = 5;
// Up to this size, a copy is cheaper than additional writes to the stream.
const LARGEST_COPY = 16 * 1024;

/**
 * A gRPC call over HTTP/2 whose request and response are bytes. Read the body exactly once, by `receive`, starting
 * in the turn of the event loop in which the call was created. Then dispose of it, which ends an open stream.
 */
export class RawCall implements Disposable {
  readonly session: ClientHttp2Session;
  readonly #method: string;
  readonly #stream: ClientHttp2Stream;
  readonly #status = new CallStatus();
  #failure: unknown;

  /**
   * @param method "package.Service/Method"
   * @param pieces encoded request; must not change until the call ends
   */
  constructor(session: ClientHttp2Session, method: string, pieces: readonly Uint8Array[]) {
    this.session = session;
    this.#method = method;
    this.#stream = session.request({
      ":method": "POST",
      ":path": `/${method}`,
      "content-type": "application/grpc",
      te: "trailers",
    });
    this.#stream.on("response", (headers) => this.#status.takeHeaders(headers));
    this.#stream.on("trailers", (trailers) => this.#status.takeTrailers(trailers));
    this.#stream.on("error", (error) => {
      this.#failure ??= error;
    });
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32BE(length, 1);
    if (length <= LARGEST_COPY) {
      this.#stream.end(Buffer.concat([header, ...pieces]));
      return;
    }
    this.#stream.write(header);
    for (const piece of pieces) this.#stream.write(piece);
    this.#stream.end();
  }

  /** Whether the server has sent headers. */
  get hasHeaders(): boolean {
    return this.#status.hasHeaders;
  }

  /**
   * Reads the body as it arrives. Resolves when the server ends the call with OK. Rejects with a ClientError of the
   * call's status or `UNAVAILABLE`, with the error of `onChunk`, or with the signal's reason.
   */
  receive(onChunk: (chunk: Buffer) => void, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#stream.on("data", (chunk: Buffer) => {
        try {
          onChunk(chunk);
        } catch (error) {
          reject(error);
          this[Symbol.dispose]();
        }
      });
      this.#stream.once("close", () => {
        signal.removeEventListener("abort", onAbort);
        const failure = this.#status.failure(this.#method, this.#failure);
        if (failure) reject(failure);
        else resolve();
      });
    });
  }

  /** Suspends `receive`. The server can send no more than the flow control window. */
  pause(): void {
    this.#stream.pause();
  }

  /** Continues `receive`. */
  resume(): void {
    this.#stream.resume();
  }

  /** Also ends a stream whose response arrived before the request was fully read. */
  [Symbol.dispose](): void {
    if (!this.#stream.destroyed && !this.#stream.closed) this.#stream.close(constants.NGHTTP2_CANCEL);
  }
}
