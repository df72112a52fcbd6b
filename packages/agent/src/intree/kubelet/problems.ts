/** Problems of a reading, without duplicates. */
export class Problems {
  readonly #said = new Set<string>();

  add(problem: string): void {
    if (this.#said.size < MAX_KEPT) this.#said.add(problem);
  }

  /** Sorted, so that the same problems produce the same text. */
  list(): string[] {
    return [...this.#said].sort();
  }
}

// A faulty device plugin often causes the same kind of problem for each of its devices.
const MAX_KEPT = 64;
