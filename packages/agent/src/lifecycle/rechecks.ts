import type { Clock, Timer } from "@nodekeeper/core/lib";

export interface RechecksOptions {
  clock: Clock;
  /** How many pods may be waiting; a relist of all pods finds what the others have. */
  limit: number;
  read: (podUid: string) => void;
}

// A runtime sends an event before or after its store has the change: containerd's are apart by milliseconds, under
// load by more.
const DELAYS_MS = [100, 1_000];

/** Reads pods again whose hint was followed by a reading that found nothing new. */
export class Rechecks {
  readonly #options: RechecksOptions;
  /** Pods that were hinted and not found changed since; how often each was read again. */
  readonly #pending = new Map<string, { hintedAt: number; done: number; timer: Timer | undefined }>();

  constructor(options: RechecksOptions) {
    this.#options = options;
  }

  /** A hint names the pod: what is read from now on may still be older than the change. */
  hinted(podUid: string): void {
    const hintedAt = this.#options.clock.monotonic();
    const known = this.#pending.get(podUid);
    if (known) Object.assign(known, { hintedAt, done: 0 });
    else if (this.#pending.size < this.#options.limit)
      this.#pending.set(podUid, { hintedAt, done: 0, timer: undefined });
  }

  /** The pod was read, and nothing was new. */
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
   * A list of all pods that began at `startedAt` stands in for the readings that were due by then: it may be older than
   * what a hint was about, just as they may. `changed` comes after it for those that it shows changed.
   */
  listed(startedAt: number): void {
    for (const [podUid, { hintedAt }] of this.#pending) if (hintedAt < startedAt) this.unchanged(podUid);
  }

  /** A reading that began at `startedAt` found a change: that is what hints before it were about. */
  changed(podUid: string, startedAt: number): void {
    const pending = this.#pending.get(podUid);
    if (!pending || pending.hintedAt > startedAt) return;
    pending.timer?.cancel();
    this.#pending.delete(podUid);
  }

  /** Forgets all pods. */
  stop(): void {
    for (const { timer } of this.#pending.values()) timer?.cancel();
    this.#pending.clear();
  }
}
