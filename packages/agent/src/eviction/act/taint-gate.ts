import type { EvictionState, RoundInput } from "@nodekeeper/api/decide";
import type { Clock } from "@nodekeeper/core/lib";

// How long plugins have to register and answer after a start, milliseconds. If a plugin takes longer, its conditions
// still stay for their transition period.
const STARTUP_GRACE_MS = 60_000;

/**
 * After a start, prevents the removal of taints until the desired taints are known: until a round in which all plugins
 * answered, including those with a condition in the stored state, or until a minute has passed. Without a stored state
 * it is unknown which plugins to wait for, so the full minute has to pass.
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

  /** Returns whether taints may be removed after this round. Once true, it stays true until `start` is called again. */
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
    this.#isOpen = isWhole || this.#clock.monotonic() - this.#startedAt >= STARTUP_GRACE_MS;
    return this.#isOpen;
  }
}
