/**
 * Reuses memory for consecutive messages of similar size. New buffers would become garbage that only a full collection
 * frees, because a message that is kept until the next one survives the young generation.
 */
export class MessageBuffers {
  readonly #free: Buffer[] = [];

  /**
   * Returns memory of at least `size` bytes with arbitrary content. Undefined if none is free or all is more than twice
   * as large.
   */
  reuse(size: number): Buffer | undefined {
    const at = this.#free.findIndex(({ length }) => length >= size && length <= 2 * size);
    return at < 0 ? undefined : this.#free.splice(at, 1)[0];
  }

  /** Allocates new memory. */
  allocate(size: number): Buffer {
    // Not from Node's shared pool, because `give` takes back the whole buffer behind a view.
    return Buffer.allocUnsafeSlow(size);
  }

  /**
   * Takes back the memory of a message that is no longer read, given any view of it. Messages that are not returned are
   * garbage collected.
   */
  give(message: Uint8Array): void {
    if (message.buffer.byteLength < SMALLEST) return;
    this.#free.push(Buffer.from(message.buffer as ArrayBuffer));
    if (this.#free.length > MOST_FREE) this.#free.shift();
  }
}

// One is received while another is kept.
const MOST_FREE = 2;
// Below this size, garbage collection is cheaper than reuse.
const SMALLEST = 16 * 1024;
