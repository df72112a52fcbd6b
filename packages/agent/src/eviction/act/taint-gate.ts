import type { Clock } from "@nodekeeper/core/lib";
import type { RoundInput } from "../decide/round.ts";
import type { EvictionState } from "../decide/state.ts";

// A plugin that runs is found by the agent's first scan; one that takes longer than this is taken for gone. What it
// had said stays for its transition period all the same.
const SETTLE_MS = 60_000;

/**
 * Keeps taints from being removed after a start until it is known which are valid: until a round in which all plugins answered,
 * those with a condition in the stored state among them, or a minute has passed. Without a stored state nobody knows
 * who is missing, so the minute always counts.
 */
export class TaintGate {
  readonly #clock: Clock;
  #awaited: ReadonlySet<string> | undefined;
  #startedAt = 0;
  #isOpen = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(stored: EvictionState | undefined): void {
    this.#startedAt = this.#clock.monotonic();
    this.#awaited = stored && new Set(stored.conditions.map(({ plugin }) => plugin));
    this.#isOpen = false;
  }

  /** Whether taints may be removed after this round; once they may, they may. */
  isOpen({ plugins }: Pick<RoundInput, "plugins">): boolean {
    if (this.#isOpen) return true;
    const answered = new Set(
      plugins.flatMap(({ plugin, evictPods, threshold }) =>
        "answer" in evictPods && "answer" in threshold ? [plugin] : [],
      ),
    );
    const isWhole =
      this.#awaited !== undefined &&
      answered.size === plugins.length &&
      [...this.#awaited].every((plugin) => answered.has(plugin));
    this.#isOpen = isWhole || this.#clock.monotonic() - this.#startedAt >= SETTLE_MS;
    return this.#isOpen;
  }
}
