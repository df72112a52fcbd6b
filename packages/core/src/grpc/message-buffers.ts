/**
 * Memory for messages that come one after another and are about as large: memory that is given back is used again. A
 * new buffer for each would be garbage that only a full collection finds, for a message that is kept until the next
 * one outlives the young generation.
 */
export class MessageBuffers {
  readonly #free: Buffer[] = [];

  /** Memory of at least `size` bytes with any contents. Undefined where there is none, or only much larger. */
  reuse(size: number): Buffer | undefined {
    const at = this.#free.findIndex(({ length }) => length >= size && length <= 2 * size);
    return at < 0 ? undefined : this.#free.splice(at, 1)[0];
  }

  /** New memory. */
  allocate(size: number): Buffer {
    // Not from the pool that small buffers share: `give` takes back what lies behind a view.
    return Buffer.allocUnsafeSlow(size);
  }

  /**
   * Takes back the memory of a message that is not read any more, by any view of it. A message that is never given back
   * is left to garbage collection.
   */
  give(message: Uint8Array): void {
    if (message.buffer.byteLength < SMALLEST) return;
    this.#free.push(Buffer.from(message.buffer as ArrayBuffer));
    if (this.#free.length > MOST_FREE) this.#free.shift();
  }
}

// One that is received while another is kept.
const MOST_FREE = 2;
// Below, the collection of new buffers costs less than keeping old ones.
const SMALLEST = 16 * 1024;
