import { ClientError, Status } from "nice-grpc";
import { HEADER_BYTES } from "./raw-call.ts";

/** Collects the body of a unary call, which must be one uncompressed message. */
export class UnaryResponse {
  readonly #method: string;
  readonly #maxBytes: number;
  readonly #chunks: Buffer[] = [];
  #received = 0;

  /**
   * @param method named in errors
   * @param maxBytes largest accepted message, in bytes
   */
  constructor(method: string, maxBytes: number) {
    this.#method = method;
    this.#maxBytes = maxBytes;
  }

  /** Adds a chunk of the body. Throws a ClientError (`RESOURCE_EXHAUSTED`) if the message is too large. */
  push(chunk: Buffer): void {
    this.#received += chunk.length;
    if (this.#received > this.#maxBytes + HEADER_BYTES) {
      const details = `the response is larger than ${this.#maxBytes} bytes`;
      throw new ClientError(this.#method, Status.RESOURCE_EXHAUSTED, details);
    }
    this.#chunks.push(chunk);
  }

  /** Returns the encoded message. Throws a ClientError (`INTERNAL`) if the body is not one complete message. */
  end(): Uint8Array {
    const [first] = this.#chunks;
    const body = first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    // Compression is not supported; the client does not offer it.
    const isWhole =
      body.length >= HEADER_BYTES && body[0] === 0 && body.readUInt32BE(1) === body.length - HEADER_BYTES;
    if (isWhole) return body.subarray(HEADER_BYTES);
    throw new ClientError(this.#method, Status.INTERNAL, "the response is not one complete message");
  }
}
