import type { HintedExit } from "../runtime/index.ts";

// Enough for a burst of short-lived containers between two readings.
const MAX_EXITS = 1_000;

/**
 * The most recent container exits reported by the runtime's container events. They are used only for containers that
 * were removed before they could be inspected.
 */
export class HintedExits {
  readonly #exits = new Map<string, HintedExit>();

  add(exits: readonly HintedExit[]): void {
    for (const exit of exits) {
      this.#exits.delete(exit.containerId);
      this.#exits.set(exit.containerId, exit);
    }
    for (const id of this.#exits.keys()) {
      if (this.#exits.size <= MAX_EXITS) return;
      this.#exits.delete(id);
    }
  }

  get(containerId: string): HintedExit | undefined {
    return this.#exits.get(containerId);
  }
}
