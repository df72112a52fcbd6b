import { setImmediate } from "node:timers/promises";
import { NodekeeperError } from "../lib/index.ts";
import { explain, type PodExplanation } from "./explain.ts";
import { referenceTo } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { EvictionRecords } from "./records.ts";
import { addToReplay, emptyReplay, type Replay } from "./replay.ts";
import type { RoundRecord } from "./round-record.ts";
import { type RoundSummary, summaryOf } from "./round-summary.ts";

// Unpacking a round of a thousand pods takes a few milliseconds, and the agent has other things to do.
const ROUNDS_AT_ONCE = 10;
const MOST_ROUNDS = 1_000;
const LAST_ROUNDS = 20;

/** What the API and the commands ask of the records. */
export class RecordQueries {
  readonly #records: EvictionRecords;

  constructor(records: EvictionRecords) {
    this.#records = records;
  }

  /** All that is known of a pod by its UID or "namespace/name", of several of a name the newest. Throws `notFound`. */
  explainPod(uidOrName: string): PodExplanation {
    const pod = this.#records.findPod(uidOrName);
    if (pod) return explain(pod, this.#records.roundsOfPod(pod.uid), this.#records.steps(pod.uid));
    return this.#explainBystander(uidOrName);
  }

  // Nobody asked for it; the last round that saw it still tells where it stood, or why it is no candidate.
  #explainBystander(uidOrName: string): PodExplanation {
    for (const record of this.#records.lastRounds(LAST_ROUNDS).reverse()) {
      const pod = record.input.pods.find(
        ({ uid, namespace, name }) => uid === uidOrName || `${namespace}/${name}` === uidOrName,
      );
      if (pod) return explain(referenceTo(pod), [record], []);
    }
    throw new NodekeeperError(
      "notFound",
      `no recorded round was about the pod ${uidOrName.slice(0, 300)}, and the last ${LAST_ROUNDS} did not see it`,
    );
  }

  /** Rounds since a time (wall milliseconds) with an id above `after`, oldest first, at most 1,000. */
  async rounds(since: number, after: number, signal: AbortSignal): Promise<RoundSummary[]> {
    const summaries: RoundSummary[] = [];
    for await (const record of this.records(since, after, signal)) {
      summaries.push(summaryOf(record));
      if (summaries.length >= MOST_ROUNDS) break;
    }
    return summaries;
  }

  /** What rounds since a time (wall milliseconds) would have decided under another policy. */
  async replay(since: number, policy: EvictionPolicy, signal: AbortSignal): Promise<Replay> {
    const result = emptyReplay();
    for await (const record of this.records(since, 0, signal)) addToReplay(result, record, policy);
    return result;
  }

  /** Whole rounds, oldest first, for a file that `replay` can be run on elsewhere; lets others have their turn between. */
  async *records(since: number, after: number, signal: AbortSignal): AsyncGenerator<RoundRecord> {
    for (let from = after; ; ) {
      const { records, last } = this.#records.page({ since, after: from, limit: ROUNDS_AT_ONCE });
      yield* records;
      if (last === undefined) return;
      from = last;
      await setImmediate(undefined, { signal });
    }
  }
}
