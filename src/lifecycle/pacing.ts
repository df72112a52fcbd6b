import type { Clock } from "../lib/index.ts";
import { Alarm } from "./alarm.ts";

export interface RelistPacingOptions {
  clock: Clock;
  /** From the end of a relist to the start of the next, milliseconds. */
  shortMs: number;
  /** The same while hints can be relied on. */
  longMs: number;
  /** Whether they can. */
  relaxed: () => boolean;
}

/** When the next relist is due. */
export class RelistPacing {
  readonly #options: RelistPacingOptions;
  readonly #alarm: Alarm;
  #longMs: number;
  #soon = false;

  constructor(options: RelistPacingOptions) {
    this.#options = options;
    this.#alarm = new Alarm(options.clock);
    this.#longMs = options.longMs;
  }

  /** A relist begins: it is what somebody wanted soon. */
  begin(): void {
    this.#soon = false;
  }

  /** The next relist comes after the short period. */
  soon(): void {
    this.#soon = true;
    this.#alarm.ring();
  }

  /** Hints that are shared out between several subscribers, or lost, are no ground for listing rarely. */
  distrust(): void {
    this.#longMs = this.#options.shortMs;
    this.#alarm.ring();
  }

  /** A list came: unless it shows that hints were missed, the next one may come later. */
  relax(): void {
    this.#longMs = Math.min(this.#longMs * 2, this.#options.longMs);
  }

  /** Hints are as good as new. */
  reset(): void {
    this.#longMs = this.#options.longMs;
  }

  /** Waits from the end of a relist until the next is due, or the signal aborts; calls `onShort` every short period. */
  async pause(onShort: () => void, signal: AbortSignal): Promise<void> {
    const { clock, shortMs } = this.#options;
    const endedAt = clock.monotonic();
    let shortAt = endedAt + shortMs;
    while (!signal.aborted) {
      const now = clock.monotonic();
      const due = endedAt + this.#periodMs;
      if (now >= due) return;
      if (now >= shortAt) {
        onShort();
        shortAt = now + shortMs;
      }
      await this.#alarm.wait(Math.min(due, shortAt) - now, signal);
    }
  }

  get #periodMs(): number {
    const { shortMs, relaxed } = this.#options;
    return relaxed() && !this.#soon ? Math.max(this.#longMs, shortMs) : shortMs;
  }
}
