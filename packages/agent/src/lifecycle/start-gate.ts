import { PodsNotKnown } from "@nodekeeper/api/errors";
import { abortable, codeOf, deadlineScope, type NodekeeperError } from "@nodekeeper/core/lib";
import type { LifecycleContext } from "./context.ts";
import { lifecycleHealth } from "./health.ts";
import type { Progress } from "./progress.ts";

// Rejected callers wait for one relist period in their next attempt, so they may retry soon.
const SHORTEST_RETRY_MS = 1_000;

/**
 * Blocks callers until the agent has read the node's pods, or restored them, for the first time since its
 * start.
 */
export class StartGate {
  readonly #context: Pick<LifecycleContext, "clock" | "settings">;
  readonly #progress: Progress;
  readonly #opened = Promise.withResolvers<void>();
  #isOpen = false;

  /** @param progress explains why the gate is still closed */
  constructor(context: Pick<LifecycleContext, "clock" | "settings">, progress: Progress) {
    this.#context = context;
    this.#progress = progress;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  open(): void {
    this.#isOpen = true;
    this.#opened.resolve();
  }

  /** Resolves once the gate is open. Rejects with the signal's reason. */
  wait(signal: AbortSignal): Promise<void> {
    return abortable(this.#opened.promise, signal);
  }

  /** Like `wait`, but throws `refusal()` after a timeout. */
  async waitBriefly(signal: AbortSignal): Promise<void> {
    if (this.#isOpen) return;
    const { clock, settings } = this.#context;
    const { startedAt, now } = this.#progress.state();
    // If the runtime has been unreachable for long, new callers wait for one relist period only.
    const leftMs = Math.max(settings.firstListTimeoutMs - (now - (startedAt ?? now)), settings.relistPeriod);
    using scope = deadlineScope(clock, { ms: leftMs, name: "the first list of pods" }, signal);
    try {
      await this.wait(scope.signal);
    } catch (error) {
      if (signal.aborted || codeOf(error) !== "deadline") throw error;
      throw this.refusal();
    }
  }

  /** Returns the error for callers while the gate is closed: `unavailable` with the reason. */
  refusal(): NodekeeperError {
    const retryAfterMs = Math.max(this.#context.settings.relistPeriod, SHORTEST_RETRY_MS);
    return new PodsNotKnown({ reason: lifecycleHealth(this.#progress.state()).message }, { retryAfterMs });
  }
}
