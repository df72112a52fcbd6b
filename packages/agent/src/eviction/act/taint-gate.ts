import type { Clock } from "@nodekeeper/core/lib";
import type { RoundInput } from "../decide/round.ts";
import type { EvictionState } from "../decide/state.ts";

// How long plugins have to register and answer after a start, milliseconds. Conditions of a plugin that takes longer
// still stay for their transition period.
const STARTUP_GRACE_MS = 60_000;

/**
 * Prevents the removal of taints after a start until the desired taints are known: until a round in which all plugins
 * answered, including those with a condition in the stored state, or until a minute has passed. Without a stored state
 * the plugins to wait for are not known, so that always the minute has to pass.
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

  /** Whether taints may be removed after this round. Once true, it stays true. */
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
