import type { Clock, Timer } from "@nodekeeper/core/lib";

export interface HintMissesOptions {
  clock: Clock;
  /** A hint may come so much earlier or later than the list that shows the change, milliseconds. */
  graceMs: number;
  onMissed: (count: number) => void;
}

// A flood of hints for pods that don't exist must not take memory; forgetting them counts a few misses too many.
const MAX_HINTED = 10_000;

/** Counts changes that a list of all pods showed and no hint told. */
export class HintMisses {
  readonly #options: HintMissesOptions;
  #hinted = new Map<string, number>();
  #unexplained = new Set<string>();
  #timer: Timer | undefined;

  constructor(options: HintMissesOptions) {
    this.#options = options;
  }

  hinted(podUid: string): void {
    if (this.#hinted.size >= MAX_HINTED) this.#hinted.clear();
    this.#hinted.set(podUid, this.#options.clock.monotonic());
    this.#unexplained.delete(podUid);
  }

  /** A list showed a change of this pod. */
  found(podUid: string): void {
    if (this.#hinted.has(podUid)) return;
    this.#unexplained.add(podUid);
    this.#timer ??= this.#options.clock.after(this.#options.graceMs, () => this.#count());
  }

  /**
   * Hints well before `time` have been answered: they explain nothing that is found later. Those just before it do:
   * a runtime may send an event before its lists show the change.
   */
  forgetBefore(time: number): void {
    const answered = time - this.#options.graceMs;
    for (const [podUid, at] of this.#hinted) if (at < answered) this.#hinted.delete(podUid);
  }

  /** Forgets what is not counted yet: hints do not come at the moment. */
  reset(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#unexplained.clear();
  }

  #count(): void {
    this.#timer = undefined;
    const count = this.#unexplained.size;
    this.#unexplained.clear();
    if (count > 0) this.#options.onMissed(count);
  }
}
