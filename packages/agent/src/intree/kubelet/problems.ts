/** Problems of a reading, without duplicates. */
export class Problems {
  readonly #problems = new Set<string>();

  add(problem: string): void {
    if (this.#problems.size < MAX_KEPT) this.#problems.add(problem);
  }

  /** Returns the problems, sorted so that the same problems produce the same text. */
  list(): string[] {
    return [...this.#problems].sort();
  }
}

// A faulty device plugin often causes the same problem for each of its devices.
const MAX_KEPT = 64;
