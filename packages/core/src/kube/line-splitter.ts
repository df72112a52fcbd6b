const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines, without ever looking at a byte twice. */
export class LineSplitter {
  readonly #longest: number;
  #parts: Buffer[] = [];
  #rest = 0;

  /** @param longest bytes of a line beyond which it is not collected any further */
  constructor(longest: number) {
    this.#longest = longest;
  }

  /** Bytes of the line that has not ended yet. Once beyond `longest` it stays so. */
  get rest(): number {
    return this.#rest;
  }

  /** The lines this chunk completes, without empty ones. Stops at a line that is too long. */
  *push(chunk: Buffer): Generator<string> {
    let start = 0;
    while (start < chunk.length && this.#rest <= this.#longest) {
      const end = chunk.indexOf(NEWLINE, start);
      const part = chunk.subarray(start, end < 0 ? chunk.length : end);
      this.#parts.push(part);
      this.#rest += part.length;
      if (end < 0 || this.#rest > this.#longest) return;
      const line = this.#take();
      if (line.trim() !== "") yield line;
      start = end + 1;
    }
  }

  #take(): string {
    const line = Buffer.concat(this.#parts).toString("utf8");
    this.#parts = [];
    this.#rest = 0;
    return line;
  }
}
