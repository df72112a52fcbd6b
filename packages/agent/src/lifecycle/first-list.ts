import { abortable, type Clock, codeOf, deadlineScope, NodekeeperError } from "@nodekeeper/core/lib";

export interface FirstListOptions {
  clock: Clock;
  /** How long after the start the first list is awaited, milliseconds. */
  timeoutMs: number;
  /** How long it is awaited after that: the time of one relist. */
  periodMs: number;
  /** When the generator started, monotonic milliseconds; undefined before that. */
  startedAt: () => number | undefined;
  /** Why it has not come yet, for a person. */
  explain: () => string;
}

/** The first time that all pods were read since the start of the agent, and those who wait for it. */
export class FirstList {
  readonly #options: FirstListOptions;
  readonly #done = Promise.withResolvers<void>();
  #isDone = false;

  constructor(options: FirstListOptions) {
    this.#options = options;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  done(): void {
    this.#isDone = true;
    this.#done.resolve();
  }

  /** Resolves when it is done. Rejects with the signal's reason. */
  wait(signal: AbortSignal): Promise<void> {
    return abortable(this.#done.promise, signal);
  }

  /** As `wait`, with a bound: throws `unavailable`, with the reason, when that is over. */
  async waitBriefly(signal: AbortSignal): Promise<void> {
    if (this.#isDone) return;
    const { clock, timeoutMs, periodMs, startedAt, explain } = this.#options;
    const now = clock.monotonic();
    // A runtime that has been unreachable for long is not awaited by each consumer as long as one that comes up.
    const leftMs = Math.max(timeoutMs - (now - (startedAt() ?? now)), periodMs);
    using scope = deadlineScope(clock, leftMs, "the first list of pods", signal);
    try {
      await this.wait(scope.signal);
    } catch (error) {
      if (signal.aborted || codeOf(error) !== "deadline") throw error;
      throw new NodekeeperError("unavailable", explain());
    }
  }
}
