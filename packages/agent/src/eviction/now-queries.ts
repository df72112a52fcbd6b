import type { EvictionPolicy } from "@nodekeeper/api/decide";
import type { Clock } from "@nodekeeper/core/lib";
import type { HistoryStore } from "../state/index.ts";
import { budgetsOf, type EvictionBudgets } from "./budgets.ts";
import {
  type CandidateCounts,
  countCandidates,
  type EligiblePods,
  listEligibility,
} from "./candidate-counts.ts";
import type { EvictionManager } from "./manager.ts";
import type { NodePods } from "./parts.ts";
import { readNodePod } from "./records/pod-history.ts";

export interface NowQueriesOptions {
  nodeName: string;
  manager: Pick<EvictionManager, "state" | "lastRoundAt" | "thresholds" | "refusals">;
  pods: Pick<NodePods, "list">;
  history: Pick<HistoryStore, "pod">;
  policy: () => EvictionPolicy;
  clock: Clock;
}

/** Queries of the HTTP API for the current state. Every result is computed on request. */
export class NowQueries {
  readonly #options: NowQueriesOptions;

  constructor(options: NowQueriesOptions) {
    this.#options = options;
  }

  /** Returns the limits of evictions and their use, and the paused, queued and pending evictions. */
  budgets(): EvictionBudgets {
    const { manager, history, policy, clock } = this.#options;
    const formerPod = (uid: string) => {
      const stored = history.pod(uid);
      return stored && readNodePod(stored)?.pod;
    };
    const { state, lastRoundAt, thresholds, refusals } = manager;
    return budgetsOf({
      ...{ state, lastRoundAt, thresholds, refusals, formerPod },
      pods: this.#pods(),
      policy: policy(),
      now: clock.now(),
    });
  }

  /** Returns the pods by QoS, and how many of them can be evicted. */
  candidates(): CandidateCounts {
    return countCandidates(this.#view());
  }

  /** Returns the pods, and whether each can be evicted, or why not and until when. */
  eligibility(): EligiblePods {
    return listEligibility(this.#view());
  }

  #view() {
    const { nodeName, manager, policy, clock } = this.#options;
    return { pods: this.#pods(), nodeName, policy: policy(), state: manager.state, now: clock.now() };
  }

  #pods() {
    return this.#options.pods.list().map(({ pod }) => pod);
  }
}
