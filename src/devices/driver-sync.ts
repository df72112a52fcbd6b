import { Backoff, messageOf } from "../lib/index.ts";
import type { Desired } from "./driver.ts";
import type { DroppedField } from "./features.ts";
import type { WriteResult } from "./slice-writer.ts";

const REPAIR_MEMORY_MS = 300_000;

/** How it goes with one driver's slices. Times are monotonic milliseconds. */
export class DriverSync {
  readonly #failures: Backoff;
  readonly #repairs: Backoff;
  #repairedAt = Number.NEGATIVE_INFINITY;
  #settledFor: Desired | undefined;
  #told = "";
  #writtenAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** Why nothing can be written. */
  error: string | undefined;
  /** Slices that the API server refuses, and its words. */
  refused: ReadonlyMap<string, string> = new Map();
  dropped: readonly DroppedField[] = [];

  constructor(random?: () => number) {
    const more = random ? { random } : {};
    this.#failures = new Backoff({ baseMs: 500, maxMs: 30_000, jitter: 0.3, ...more });
    this.#repairs = new Backoff({ baseMs: 250, maxMs: 60_000, jitter: 0.3, ...more });
  }

  /** How long the next round of writes has to wait: for the pause between rounds, or for a server in trouble. */
  rest(now: number, minWriteIntervalMs: number): number {
    return Math.max(this.#writtenAt + minWriteIntervalMs, this.#pausedUntil) - now;
  }

  /** Takes what a round came to. */
  wrote({ writes, failures, dropped }: WriteResult, now: number): void {
    if (writes > 0) this.#writtenAt = now;
    if (dropped.length > 0 || writes > 0) this.dropped = dropped;
    this.refused = new Map([...failures].map(([name, error]) => [name, messageOf(error)]));
    this.error = undefined;
  }

  /** All is as the driver wants it. */
  settled(desired: Desired): void {
    this.#failures.reset();
    this.#settledFor = desired;
  }

  /** Some slices could not be written; answers when to try again. */
  failedPartly(): number {
    return this.#failures.next();
  }

  /** Nothing could be written: the server is left alone for a while, whatever the driver says. Answers how long. */
  failed(error: unknown, now: number, atLeastMs: number): number {
    this.error = messageOf(error);
    const delayMs = Math.max(this.#failures.next(), atLeastMs);
    this.#pausedUntil = now + delayMs;
    return delayMs;
  }

  /** Whether a change is somebody else's: the driver wants what it wanted when all was well. */
  isRepair(desired: Desired | undefined): boolean {
    return this.#settledFor !== undefined && this.#settledFor === desired;
  }

  /** How long to wait before a repair: not at all for the first, ever longer against one who does it again and again. */
  repairDelay(now: number): number {
    if (now - this.#repairedAt > REPAIR_MEMORY_MS) this.#repairs.reset();
    const isFirst = this.#repairs.failures === 0;
    const delayMs = this.#repairs.next();
    this.#repairedAt = now;
    return isFirst ? 0 : delayMs;
  }

  /** What is to be told of devices that are not published; nothing where it was told already. */
  news(driver: string, { problems, quarantined }: Desired): string[] {
    const [problem] = problems;
    const [refused] = this.refused;
    const [dropped] = this.dropped;
    const messages: string[] = [];
    if (problem) {
      const what = `${problem.device ? `${problem.device} of ` : ""}pool ${problem.pool}`;
      messages.push(
        `Driver ${driver}: ${quarantined} devices are held back; ${what}: ${problem.field}: ${problem.message}`,
      );
    }
    if (refused) messages.push(`Driver ${driver}: the API server refuses slice ${refused[0]}: ${refused[1]}`);
    if (dropped) {
      const why = dropped.feature ? ` (${dropped.feature} is off)` : "";
      messages.push(`Driver ${driver}: the API server drops ${dropped.field}${why}`);
    }
    const told = messages.join("\n");
    if (told === this.#told) return [];
    this.#told = told;
    return messages;
  }
}
