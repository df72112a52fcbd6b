import type { EvictionOutcome, EvictionProgress } from "@nodekeeper/api/decide";
import type { EvictionStep } from "@nodekeeper/api/records";
import type { Clock } from "@nodekeeper/core/lib";
import type { EvictionLedger } from "../ledger.ts";

/** Collects the progress, outcomes and steps of an evictor, without a database. */
export class TestLedger implements Pick<EvictionLedger, "progress" | "outcome" | "step"> {
  readonly #clock: Clock;
  #outcomes: EvictionOutcome[] = [];
  #steps: EvictionStep[] = [];
  #onProgress: (progress: EvictionProgress) => boolean = () => true;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param listener returns whether the progress survives the agent */
  onProgress(listener: (progress: EvictionProgress) => boolean): void {
    this.#onProgress = listener;
  }

  progress(progress: EvictionProgress): boolean {
    return this.#onProgress(progress);
  }

  outcome(outcome: EvictionOutcome): void {
    this.#outcomes.push(outcome);
  }

  step(uid: string, message: string): void {
    this.#steps.push({ uid, at: this.#clock.now(), message });
  }

  /** Returns the outcomes since the last call. */
  takeOutcomes(): EvictionOutcome[] {
    return this.#outcomes.splice(0);
  }

  /** Returns the steps since the last call. */
  takeSteps(): EvictionStep[] {
    return this.#steps.splice(0);
  }
}
