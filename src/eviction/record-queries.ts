import { setImmediate } from "node:timers/promises";
import { NodekeeperError } from "../lib/index.ts";
import { addToExplanation, emptyExplanation, type PodExplanation } from "./explain.ts";
import { type PodReference, referenceTo } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { EvictionRecords } from "./records.ts";
import { addToReplay, emptyReplay, type Replay } from "./replay.ts";
import type { RoundRecord } from "./round-record.ts";
import { type RoundSummary, summaryOf } from "./round-summary.ts";

// Unpacking a round of a thousand pods takes a few milliseconds, and the agent has other things to do.
const ROUNDS_AT_ONCE = 3;
const MOST_ROUNDS = 250;
const MOST_SUMMARIES_LENGTH = 2 * 1024 * 1024;
const LAST_ROUNDS = 20;
const MOST_OTHER_UIDS = 10;

/** What the API and the commands ask of the records. */
export class RecordQueries {
  readonly #records: EvictionRecords;

  constructor(records: EvictionRecords) {
    this.#records = records;
  }

  /** All that is known of a pod by its UID or "namespace/name", of several of a name the newest. Throws `notFound`. */
  async explainPod(uidOrName: string, signal: AbortSignal): Promise<PodExplanation> {
    const [pod, ...others] = this.#records.findPods(uidOrName);
    if (!pod) return this.#explainBystander(uidOrName);
    const explanation = this.#emptyExplanation(pod);
    explanation.otherUids = others.slice(0, MOST_OTHER_UIDS).map(({ uid }) => uid);
    let read = 0;
    for (const record of this.#records.roundsOfPod(pod.uid)) {
      addToExplanation(explanation, record);
      if (++read % ROUNDS_AT_ONCE === 0) await setImmediate(undefined, { signal });
    }
    // Last, so that no step is there of a round that is not.
    explanation.steps = this.#records.steps(pod.uid);
    return explanation;
  }

  // Nobody asked for it; the last round that saw it still tells where it stood, or why it is no candidate.
  #explainBystander(uidOrName: string): PodExplanation {
    for (const record of this.#records.lastRounds(LAST_ROUNDS)) {
      const pod = record.input.pods.find(
        ({ uid, namespace, name }) => uid === uidOrName || `${namespace}/${name}` === uidOrName,
      );
      if (!pod) continue;
      const explanation = this.#emptyExplanation(referenceTo(pod));
      addToExplanation(explanation, record);
      return explanation;
    }
    const since = this.#records.oldestAt();
    const held =
      since === undefined
        ? "there are no records: nothing has happened yet, or they have expired"
        : `the records go back to ${new Date(since).toISOString()}, and the last ${LAST_ROUNDS} rounds in them did not see it either`;
    const taken = uidOrName.includes("/") ? "" : " (taken for a UID: a name needs its namespace)";
    throw new NodekeeperError(
      "notFound",
      `no recorded round was about the pod ${uidOrName.slice(0, 300)}${taken}; ${held}`,
    );
  }

  #emptyExplanation(pod: PodReference): PodExplanation {
    return { ...emptyExplanation(pod), recordsSince: this.#records.oldestAt() ?? null };
  }

  /**
   * Rounds since a time (wall milliseconds) with an id above `after`, oldest first. Some of them, where there are many:
   * whoever wants all goes on after the last id until none comes.
   */
  async rounds(since: number, after: number, signal: AbortSignal): Promise<RoundSummary[]> {
    const summaries: RoundSummary[] = [];
    let length = 0;
    for await (const record of this.records(since, after, signal)) {
      const summary = summaryOf(record);
      summaries.push(summary);
      length += JSON.stringify(summary).length;
      if (summaries.length >= MOST_ROUNDS || length >= MOST_SUMMARIES_LENGTH) break;
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
    let read = 0;
    for (const record of this.#records.roundsOneByOne({ since, after })) {
      yield record;
      if (++read % ROUNDS_AT_ONCE === 0) await setImmediate(undefined, { signal });
    }
  }
}
