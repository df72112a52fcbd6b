const NEWLINE = 0x0a;

/** Splits a stream of bytes into lines. Scans each byte once. */
export class LineSplitter {
  readonly #longest: number;
  #parts: Buffer[] = [];
  #rest = 0;

  /** @param longest maximum length of a line in bytes; a longer line is not buffered further */
  constructor(longest: number) {
    this.#longest = longest;
  }

  /** Number of bytes of the incomplete line. Stays above `longest` once exceeded. */
  get rest(): number {
    return this.#rest;
  }

  /** Yields the non-empty lines that this chunk completes. Stops at a line that is too long. */
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
