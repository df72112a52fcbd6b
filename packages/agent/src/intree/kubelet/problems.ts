/** What could not be reported, each said once. */
export class Problems {
  readonly #said = new Set<string>();

  add(problem: string): void {
    if (this.#said.size < MOST_KEPT) this.#said.add(problem);
  }

  /** Sorted, so that the same problems are the same text whatever the order in which they were met. */
  list(): string[] {
    return [...this.#said].sort();
  }
}

// A device plugin that gets one thing wrong often gets it wrong for each of its devices.
const MOST_KEPT = 64;
