import type { Clock, Timer } from "@nodekeeper/core/lib";

export interface RechecksOptions {
  clock: Clock;
  /** Maximum number of pods waiting; changes of others are found by the next relist. */
  limit: number;
  read: (podUid: string) => void;
}

// Runtimes send events before or after their lists show the change: milliseconds apart in containerd, longer under load.
const DELAYS_MS = [100, 1_000];

/** Repeats the reading of pods for which a hint was received but the reading found no change. */
export class Rechecks {
  readonly #options: RechecksOptions;
  /** Pods with a hint but no change found since, with the number of repeated readings. */
  readonly #pending = new Map<string, { hintedAt: number; done: number; timer: Timer | undefined }>();

  constructor(options: RechecksOptions) {
    this.#options = options;
  }

  /** Called for a hint: readings that start now may not show the change yet. */
  hinted(podUid: string): void {
    const hintedAt = this.#options.clock.monotonic();
    const known = this.#pending.get(podUid);
    if (known) Object.assign(known, { hintedAt, done: 0 });
    else if (this.#pending.size < this.#options.limit)
      this.#pending.set(podUid, { hintedAt, done: 0, timer: undefined });
  }

  /** Called when the pod was read and had not changed. */
  unchanged(podUid: string): void {
    const { clock, read } = this.#options;
    const pending = this.#pending.get(podUid);
    if (!pending || pending.timer) return;
    const delayMs = DELAYS_MS[pending.done];
    if (delayMs === undefined) {
      this.#pending.delete(podUid);
      return;
    }
    pending.timer = clock.after(delayMs, () => {
      pending.timer = undefined;
      pending.done++;
      read(podUid);
    });
  }

  /**
   * Called for a list of all pods started at `startedAt`, which replaces the readings due by then. `changed` is called
   * afterwards for the pods that it shows changed.
   */
  listed(startedAt: number): void {
    for (const [podUid, { hintedAt }] of this.#pending) if (hintedAt < startedAt) this.unchanged(podUid);
  }

  /** Called when a reading started at `startedAt` found a change, which satisfies earlier hints. */
  changed(podUid: string, startedAt: number): void {
    const pending = this.#pending.get(podUid);
    if (!pending || pending.hintedAt > startedAt) return;
    pending.timer?.cancel();
    this.#pending.delete(podUid);
  }

  /** Cancels all repeated readings. */
  stop(): void {
    for (const { timer } of this.#pending.values()) timer?.cancel();
    this.#pending.clear();
  }
}
