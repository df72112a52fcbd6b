import type { Clock, Timer } from "@nodekeeper/core/lib";

export interface HintMissesOptions {
  clock: Clock;
  /** How much earlier or later than the list that shows the change a hint may arrive, milliseconds. */
  graceMs: number;
  onMissed: (count: number) => void;
}

// Bounds memory in case of hints for nonexistent pods. Dropped hints may be counted as misses.
const MAX_HINTED = 10_000;

/** Counts changes found by a list of all pods for which no hint was received. */
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

  /** Called when a list showed a change of this pod. */
  found(podUid: string): void {
    if (this.#hinted.has(podUid)) return;
    this.#unexplained.add(podUid);
    this.#timer ??= this.#options.clock.after(this.#options.graceMs, () => this.#count());
  }

  /**
   * Drops hints older than `time` minus the grace period. Later ones are kept, since a runtime may send an event before
   * its lists show the change.
   */
  forgetBefore(time: number): void {
    const answered = time - this.#options.graceMs;
    for (const [podUid, at] of this.#hinted) if (at < answered) this.#hinted.delete(podUid);
  }

  /** Drops uncounted changes, while no hints are received. */
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
