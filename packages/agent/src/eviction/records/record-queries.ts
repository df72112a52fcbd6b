import { setImmediate } from "node:timers/promises";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { HistoryStore, StoredNodePod } from "../../state/index.ts";
import { type PodReference, referenceTo } from "../decide/pods.ts";
import type { EvictionPolicy } from "../decide/policy.ts";
import type { EvictionState } from "../decide/state.ts";
import { addToExplanation, emptyExplanation, type PodExplanation } from "./explain.ts";
import { explainConditions, type NodeExplanation } from "./explain-node.ts";
import { readNodePod } from "./pod-history.ts";
import type { HistoryLine } from "./record-lines.ts";
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
const PODS_AT_ONCE = 100;
// What the history has of the node itself.
const NODE = "";

/** What the API and the commands ask of the records. */
export class RecordQueries {
  readonly #records: EvictionRecords;
  readonly #history: HistoryStore;
  readonly #state: () => EvictionState | undefined;

  /** @param state what the last round left, where an agent runs; else the stored one */
  constructor(records: EvictionRecords, history: HistoryStore, state = () => records.loadState()) {
    this.#records = records;
    this.#history = history;
    this.#state = state;
  }

  /** Conditions and taints that eviction sets, and when it set and cleared them. */
  explainNode(): NodeExplanation {
    const [last] = this.#records.lastRounds(1);
    const state = this.#state();
    const { policy, nodeName = null } = last?.input ?? {};
    return {
      nodeName,
      at: state?.at ?? null,
      transitionMs: policy?.conditionTransitionMs ?? null,
      conditions: state && policy ? explainConditions(state, policy) : [],
      events: this.#history.events(NODE),
      recordsSince: this.#recordsSince(),
    };
  }

  /**
   * All that is recorded of a pod by its UID or "namespace/name". Of several of a name the newest that was asked for or
   * left the node; where there is none such, the newest. Throws `notFound`.
   */
  async explainPod(uidOrName: string, signal: AbortSignal): Promise<PodExplanation> {
    const asked = this.#records.findPods(uidOrName);
    const seen = this.#findSeen(uidOrName);
    const story = seen.find(({ uid, leftAt }) => leftAt !== null || asked.some((pod) => pod.uid === uid));
    const pod = story ?? asked[0] ?? seen[0];
    if (!pod) return this.#explainBystander(uidOrName);
    const explanation = this.#emptyExplanation(pod);
    const others = new Set([...seen, ...asked].map(({ uid }) => uid));
    others.delete(pod.uid);
    explanation.otherUids = [...others].slice(0, MOST_OTHER_UIDS);
    let read = 0;
    for (const record of this.#records.roundsOfPod(pod.uid)) {
      addToExplanation(explanation, record);
      if (++read % ROUNDS_AT_ONCE === 0) await setImmediate(undefined, { signal });
    }
    if (read === 0 && explanation.history?.leftAt === null) this.#addLastRound(explanation);
    // Last, so that no step is there of a round that is not.
    explanation.steps = this.#records.steps(pod.uid);
    return explanation;
  }

  #findSeen(uidOrName: string): StoredNodePod[] {
    const [namespace = "", name] = uidOrName.split("/");
    if (name !== undefined) return this.#history.podsNamed(namespace, name);
    const pod = this.#history.pod(uidOrName);
    return pod ? [pod] : [];
  }

  // No plugin asked for it; the last round that saw it still says where it stood, or why it is no candidate.
  #addLastRound(explanation: PodExplanation): void {
    for (const record of this.#records.lastRounds(LAST_ROUNDS)) {
      if (!record.input.pods.some(({ uid }) => uid === explanation.uid)) continue;
      addToExplanation(explanation, record);
      return;
    }
  }

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
    const since = this.#recordsSince();
    const held =
      since === null
        ? "there are no records: nothing has happened yet, or they have expired"
        : `the records go back to ${new Date(since).toISOString()}`;
    const taken = uidOrName.includes("/") ? "" : " (taken for a UID: a name needs its namespace)";
    throw new NodekeeperError(
      "notFound",
      `no record of the pod ${uidOrName.slice(0, 300)}${taken} on this node; ${held}`,
    );
  }

  #recordsSince(): number | null {
    const times = [this.#records.oldestAt(), this.#history.oldestAt()].filter((at) => at !== undefined);
    return times.length === 0 ? null : Math.min(...times);
  }

  #emptyExplanation(pod: PodReference): PodExplanation {
    const explanation = { ...emptyExplanation(pod), recordsSince: this.#recordsSince() };
    const stored = this.#history.pod(pod.uid);
    explanation.history = (stored && readNodePod(stored)) ?? null;
    explanation.events = this.#history.events(pod.uid);
    return explanation;
  }

  /**
   * The history of the node and of its pods since a time (wall milliseconds), for a file that `explain` can read
   * elsewhere: the node where `after` is 0, then pods with a number above it.
   */
  historyPage(since: number, after: number): { lines: HistoryLine[]; next?: number } {
    const stored = this.#history.pods({ since, after, limit: PODS_AT_ONCE });
    const lines: HistoryLine[] = stored.flatMap((one) => {
      const pod = readNodePod(one);
      const { uid } = one;
      const rest = { events: this.#history.events(uid), steps: this.#records.steps(uid) };
      return pod ? [{ kind: "pod", pod, ...rest }] : [];
    });
    if (after === 0) {
      const { at = null, conditions = [] } = this.#state() ?? {};
      lines.unshift({ kind: "node", state: { at, conditions }, events: this.#history.events(NODE) });
    }
    const last = stored.at(-1);
    return last && stored.length === PODS_AT_ONCE ? { lines, next: last.number } : { lines };
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
