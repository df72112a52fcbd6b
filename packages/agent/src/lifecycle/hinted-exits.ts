import type { HintedExit } from "../runtime/index.ts";

// As many as a burst of short-lived containers leaves between two readings.
const MOST_EXITS = 1_000;

/**
 * Exits of containers that the runtime's events carried, the newest of them. They are used where a container was
 * removed before it could be inspected, and never against an inspection.
 */
export class HintedExits {
  readonly #exits = new Map<string, HintedExit>();

  add(exits: readonly HintedExit[]): void {
    for (const exit of exits) {
      this.#exits.delete(exit.containerId);
      this.#exits.set(exit.containerId, exit);
    }
    for (const id of this.#exits.keys()) {
      if (this.#exits.size <= MOST_EXITS) return;
      this.#exits.delete(id);
    }
  }

  get(containerId: string): HintedExit | undefined {
    return this.#exits.get(containerId);
  }
}
