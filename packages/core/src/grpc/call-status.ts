import type { IncomingHttpHeaders } from "node:http2";
import { ClientError, Status } from "nice-grpc";
import { messageOf } from "../lib/index.ts";

/**
 * Outcome of a gRPC call, derived from its headers and trailers:
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
export class CallStatus {
  #httpStatus: number | undefined;
  #status: number | undefined;
  #details = "";

  /** Whether the server has sent headers. */
  get hasHeaders(): boolean {
    return this.#httpStatus !== undefined;
  }

  takeHeaders(headers: IncomingHttpHeaders & { ":status"?: number }): void {
    this.#httpStatus = headers[":status"];
    this.takeTrailers(headers);
  }

  /** The headers of a failed call may contain the status ("Trailers-Only"). */
  takeTrailers(trailers: IncomingHttpHeaders): void {
    const status = trailers["grpc-status"];
    if (status === undefined) return;
    this.#status = Number(status);
    this.#details = decoded(String(trailers["grpc-message"] ?? ""));
  }

  /** Returns why the call failed. Undefined if the status is OK. @param error error of the stream, if any */
  failure(method: string, error: unknown): ClientError | undefined {
    const failed = (status: Status, details: string) => new ClientError(method, status, details);
    if (this.#status === undefined) {
      if (error !== undefined) return failed(Status.UNAVAILABLE, messageOf(error));
      const isOdd = this.#httpStatus !== undefined && this.#httpStatus !== 200;
      const what = isOdd ? `HTTP status ${this.#httpStatus}` : "the connection ended before the response";
      return failed(Status.UNAVAILABLE, what);
    }
    if (this.#status === Status.OK) return undefined;
    const known = Status[this.#status] !== undefined ? this.#status : Status.UNKNOWN;
    return failed(known, this.#details);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
