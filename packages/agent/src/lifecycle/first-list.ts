import { abortable, type Clock, codeOf, deadlineScope, NodekeeperError } from "@nodekeeper/core/lib";

export interface FirstListOptions {
  clock: Clock;
  /** How long after the start consumers wait for the first list, milliseconds. */
  timeoutMs: number;
  /** How long they wait after that: the period of one relist. */
  periodMs: number;
  /** Start of the generator, monotonic milliseconds; undefined before it started. */
  startedAt: () => number | undefined;
  /** Why the first list has not succeeded yet, for messages. */
  explain: () => string;
}

/** Lets callers wait until all pods have been read once since the agent's start. */
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

  /** Resolves when all pods have been read. Rejects with the signal's reason. */
  wait(signal: AbortSignal): Promise<void> {
    return abortable(this.#done.promise, signal);
  }

  /** Like `wait`, with a time limit after which it throws `unavailable` with the reason. */
  async waitBriefly(signal: AbortSignal): Promise<void> {
    if (this.#isDone) return;
    const { clock, timeoutMs, periodMs, startedAt, explain } = this.#options;
    const now = clock.monotonic();
    // While the runtime has been unreachable for long, new consumers do not wait the full time.
    const leftMs = Math.max(timeoutMs - (now - (startedAt() ?? now)), periodMs);
    using scope = deadlineScope(clock, leftMs, "the first list of pods", signal);
    try {
      await this.wait(scope.signal);
    } catch (error) {
      if (signal.aborted || codeOf(error) !== "deadline") throw error;
      throw new NodekeeperError("unavailable", explain(), { id: "NK1408" });
    }
  }
}
