import type { IncomingHttpHeaders } from "node:http2";
import { ClientError, Status } from "nice-grpc";
import { messageOf } from "../lib/index.ts";

const HEADER_BYTES = 5;

/**
 * Collects the answer of one unary gRPC call:
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
export class UnaryAnswer {
  readonly #maxBytes: number;
  readonly #chunks: Buffer[] = [];
  #received = 0;
  #httpStatus: number | undefined;
  #status: number | undefined;
  #details = "";
  #isTooLarge = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  takeHeaders(headers: IncomingHttpHeaders & { ":status"?: number }): void {
    this.#httpStatus = headers[":status"];
    this.takeTrailers(headers);
  }

  /** A failed call may have its status among the headers. */
  takeTrailers(trailers: IncomingHttpHeaders): void {
    const status = trailers["grpc-status"];
    if (status === undefined) return;
    this.#status = Number(status);
    this.#details = decoded(String(trailers["grpc-message"] ?? ""));
  }

  /** False once the message is too large to be taken. */
  takeData(chunk: Buffer): boolean {
    this.#received += chunk.length;
    this.#isTooLarge ||= this.#received > this.#maxBytes + HEADER_BYTES;
    if (this.#isTooLarge) this.#chunks.length = 0;
    else this.#chunks.push(chunk);
    return !this.#isTooLarge;
  }

  /** The message, or why there is none; `error` is what the stream ended with, if it did. */
  result(method: string, error: unknown): Uint8Array | ClientError {
    if (this.#isTooLarge) {
      const details = `the answer is larger than ${this.#maxBytes} bytes`;
      return new ClientError(method, Status.RESOURCE_EXHAUSTED, details);
    }
    const failure = this.failure(method, error);
    if (failure) return failure;
    return this.#message() ?? new ClientError(method, Status.INTERNAL, "the answer is not one whole message");
  }

  /** Why the call failed by its status; `error` is what the stream ended with, if it did. */
  failure(method: string, error: unknown): ClientError | undefined {
    const failed = (status: Status, details: string) => new ClientError(method, status, details);
    if (this.#status === undefined) {
      if (error !== undefined) return failed(Status.UNAVAILABLE, messageOf(error));
      const isOdd = this.#httpStatus !== undefined && this.#httpStatus !== 200;
      const what = isOdd ? `HTTP status ${this.#httpStatus}` : "the connection ended before the answer";
      return failed(Status.UNAVAILABLE, what);
    }
    if (this.#status !== Status.OK) {
      const known = Status[this.#status] !== undefined ? this.#status : Status.UNKNOWN;
      return failed(known, this.#details);
    }
    return undefined;
  }

  #message(): Uint8Array | undefined {
    const all = Buffer.concat(this.#chunks);
    // Nobody was told that a compressed message would be understood.
    if (all.length < HEADER_BYTES || all[0] !== 0) return undefined;
    return all.readUInt32BE(1) === all.length - HEADER_BYTES ? all.subarray(HEADER_BYTES) : undefined;
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
