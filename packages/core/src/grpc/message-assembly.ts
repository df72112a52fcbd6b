import type { MessageBuffers } from "./message-buffers.ts";
import { HEADER_BYTES } from "./raw-call.ts";

const FIRST_BYTES = 64 * 1024;

/** Assembles the messages of a gRPC body from its chunks. */
export class MessageAssembly {
  readonly #buffers: MessageBuffers;
  readonly #checkHeader: (isCompressed: boolean, length: number) => void;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #memory: Buffer | undefined;
  #length = 0;
  #filled = 0;

  /** @param checkHeader throws if a message is not acceptable; called before memory is allocated for it */
  constructor(buffers: MessageBuffers, checkHeader: (isCompressed: boolean, length: number) => void) {
    this.#buffers = buffers;
    this.#checkHeader = checkHeader;
  }

  /** Whether a message is incomplete. */
  get isPartial(): boolean {
    return this.#headerBytes > 0;
  }

  /** Yields the messages that a chunk completes. */
  *add(chunk: Buffer): Generator<Buffer> {
    for (let at = 0; at < chunk.length; ) {
      at += this.#headerBytes < HEADER_BYTES ? this.#addHeader(chunk, at) : this.#addContent(chunk, at);
      if (this.#headerBytes < HEADER_BYTES || this.#filled < this.#length) continue;
      const message = this.#memory!.subarray(0, this.#length);
      this.#memory = undefined;
      this.#headerBytes = 0;
      yield message;
    }
  }

  #addHeader(chunk: Buffer, at: number): number {
    const count = chunk.copy(this.#header, this.#headerBytes, at);
    this.#headerBytes += count;
    if (this.#headerBytes < HEADER_BYTES) return count;
    this.#length = this.#header.readUInt32BE(1);
    this.#checkHeader(this.#header[0] !== 0, this.#length);
    this.#filled = 0;
    this.#memory =
      this.#buffers.reuse(this.#length) ?? this.#buffers.allocate(Math.min(this.#length, FIRST_BYTES));
    return count;
  }

  // Memory grows with the received data. A server that announces a large message and sends nothing costs nothing.
  #addContent(chunk: Buffer, at: number): number {
    const count = Math.min(chunk.length - at, this.#length - this.#filled);
    const needed = this.#filled + count;
    if (needed > this.#memory!.length) {
      const grown = Math.max(needed, 2 * this.#memory!.length);
      // Reserves some spare capacity, because the next message may be slightly larger.
      const larger = this.#buffers.allocate(grown < this.#length ? grown : roomFor(this.#length));
      this.#memory!.copy(larger, 0, 0, this.#filled);
      this.#memory = larger;
    }
    chunk.copy(this.#memory!, this.#filled, at, at + count);
    this.#filled = needed;
    return count;
  }
}

function roomFor(length: number): number {
  return length + (length >> 6);
}
