import { setImmediate } from "node:timers/promises";
import {
  type EvictionPolicy,
  type EvictionState,
  isFinal,
  isFullDryRun,
  type PodReference,
  referenceTo,
} from "@nodekeeper/api/decide";
import { PodNotRecorded } from "@nodekeeper/api/errors";
import {
  addToExplanation,
  coverageSince,
  emptyExplanation,
  explainConditions,
  explainTaints,
  type NodeExplanation,
  type PodExplanation,
  type RecordCoverage,
  type RoundRecord,
  type RoundSummary,
} from "@nodekeeper/api/records";
import { coverageLines } from "@nodekeeper/api/wording";
import type { HistoryStore, RoundSpan, StoredNodePod } from "../../state/index.ts";
import type { LiveTaints } from "../parts.ts";
import { type RecentReadings, type RoundReadings, readingsOf } from "../readings.ts";
import { readNodePod } from "./pod-history.ts";
import type { HistoryLine } from "./record-lines.ts";
import { EvictionList, type EvictionPage } from "./recorded-evictions.ts";
import type { EvictionRecords } from "./records.ts";
import { summaryOf } from "./round-summary.ts";

// Decoding a round with a thousand pods takes a few milliseconds, so the event loop gets a turn after this number of
// rounds.
const ROUNDS_AT_ONCE = 3;
const MOST_ROUNDS = 250;
// Decoding without the pods takes a tenth of that.
const READINGS_AT_ONCE = 25;
const MOST_SUMMARIES_LENGTH = 2 * 1024 * 1024;
const LAST_ROUNDS = 20;
const MOST_OTHER_UIDS = 10;
const PODS_AT_ONCE = 100;
// Events of the node are stored under the empty UID.
const NODE = "";

/** The current state of the running agent. */
export interface EvictionInForce {
  nodeName: string;
  /** The state after the last round. */
  state: () => EvictionState | undefined;
  /** The configured policy, which the next round uses. */
  policy: () => EvictionPolicy;
  /** The Node's taints as last read or written; undefined if unknown. */
  taints: () => LiveTaints | undefined;
}

/** Queries of the HTTP API and the CLI on the records. */
export class RecordQueries {
  readonly #records: EvictionRecords;
  readonly #history: HistoryStore;
  readonly #inForce: EvictionInForce | undefined;

  /** @param inForce undefined if no agent is running: then the stored state and the newest recorded round are used */
  constructor(records: EvictionRecords, history: HistoryStore, inForce?: EvictionInForce) {
    this.#records = records;
    this.#history = history;
    this.#inForce = inForce;
  }

  /** Returns the conditions and taints set by eviction, and when they were set and cleared. */
  explainNode(): NodeExplanation {
    const state = this.#state();
    const { policy, nodeName } = this.#rules();
    const conditions = state && policy ? explainConditions(state, policy) : [];
    const taints = this.#inForce?.taints();
    return {
      nodeName: nodeName ?? null,
      at: state?.at ?? null,
      transitionMs: policy?.conditionTransitionPeriodMs ?? null,
      conditions,
      taints: taints && policy ? explainTaints(taints, conditions, policy) : null,
      isDryRun: policy !== undefined && isFullDryRun(policy),
      events: this.#history.events(NODE),
      recordsSince: this.#recordsSince(),
      coverage: this.#records.coverage(),
    };
  }

  #state(): EvictionState | undefined {
    return this.#inForce ? this.#inForce.state() : this.#records.loadState();
  }

  // A running agent does not use the newest recorded round: repeated rounds are not recorded, and the configuration may
  // have changed since.
  #rules(): { nodeName?: string; policy?: EvictionPolicy } {
    if (this.#inForce) return { nodeName: this.#inForce.nodeName, policy: this.#inForce.policy() };
    const [record] = this.#records.lastRounds(1);
    return record ? { nodeName: record.input.nodeName, policy: record.input.policy } : {};
  }

  /**
   * Explains a pod by its UID or "namespace/name". If several pods have the name, selects the newest that was requested
   * or deleted, otherwise the newest. Throws `notFound`.
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
    const before = this.#inProgress(pod);
    let read = 0;
    const { rounds, others: unread } = this.#records.roundsOfPod(pod.uid);
    explanation.omitted = unread;
    for (const record of rounds) {
      addToExplanation(explanation, record);
      if (++read % ROUNDS_AT_ONCE === 0) await setImmediate(undefined, { signal });
    }
    if (read === 0 && explanation.history?.leftAt === null) this.#addLastRound(explanation);
    // Its selection or its end may be newer than the rounds that were read.
    const after = this.#inProgress(pod);
    if (after !== undefined) explanation.inProgress = before != null || after !== null;
    const selectedAt = after?.selectedAt;
    if (selectedAt !== undefined && selectedAt === before?.selectedAt) explanation.selectedAt = selectedAt;
    // Read last, so that every step belongs to a round that was read.
    explanation.steps = this.#records.steps(pod.uid);
    return explanation;
  }

  // Null if none is in progress; undefined if there is no state.
  #inProgress({ uid }: PodReference): { selectedAt?: number } | null | undefined {
    const state = this.#state();
    if (state === undefined) return undefined;
    // An outcome that no round has recorded yet and that is not the end, such as `overdue`.
    const open = state.unrecorded.filter((outcome) => !isFinal(outcome));
    return [...state.pending, ...state.interrupted, ...open].find((one) => one.uid === uid) ?? null;
  }

  #findSeen(uidOrName: string): StoredNodePod[] {
    const [namespace = "", name] = uidOrName.split("/");
    if (name !== undefined) return this.#history.podsNamed(namespace, name);
    const pod = this.#history.pod(uidOrName);
    return pod ? [pod] : [];
  }

  // If the pod was not requested, the last round that observed it has its rank, or why it is not a candidate.
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
    const kept = coverageLines(this.#records.coverage(), null)
      .join(" ")
      .replace(/^Records/, "the records");
    const taken = uidOrName.includes("/") ? "" : " (read as a UID; to look up a name write namespace/name)";
    throw new PodNotRecorded({
      problem: `no record of the pod ${uidOrName.slice(0, 300)}${taken} on this node; ${kept.replace(/\.$/, "")}`,
    });
  }

  #recordsSince(): number | null {
    const times = [this.#records.oldestAt(), this.#history.oldestAt()].filter((at) => at !== undefined);
    return times.length === 0 ? null : Math.min(...times);
  }

  #emptyExplanation(pod: PodReference): PodExplanation {
    const recordsSince = this.#recordsSince();
    const coverage = this.#records.coverage();
    const explanation = { ...emptyExplanation(pod), recordsSince, coverage };
    const stored = this.#history.pod(pod.uid);
    explanation.history = (stored && readNodePod(stored)) ?? null;
    explanation.events = this.#history.events(pod.uid);
    return explanation;
  }

  /**
   * Finds current and former pods of the node by UID or a part of "namespace/name"; at most `limit`. `more`: there are
   * others.
   */
  findPods(text: string, limit: number): { items: Omit<StoredNodePod, "record">[]; more: boolean } {
    const found = this.#history.find(text, limit + 1);
    return { items: found.slice(0, limit), more: found.length > limit };
  }

  /**
   * Returns a page of the history of the node and its pods since a time (wall milliseconds), for export. The page with
   * `after` 0 starts with the node; pods follow by their number.
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
      const coverage = coverageSince(this.#records.coverage(), since);
      const events = this.#history.events(NODE);
      lines.unshift({ kind: "node", state: { at, conditions }, events, coverage });
    }
    const last = stored.at(-1);
    return last && stored.length === PODS_AT_ONCE ? { lines, next: last.number } : { lines };
  }

  /**
   * Returns a page of rounds since a time (wall milliseconds) with an ID greater than `after`, oldest first: at most
   * 250 rounds or about 2 MiB. Pass the last ID as `after` for the next page. An empty page is the end.
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

  /** The number of conditions that eviction sets now. */
  get conditions(): number {
    return this.#state()?.conditions.length ?? 0;
  }

  /** The ID of the newest round; 0 if there is none. */
  get lastRoundId(): number {
    return this.#records.nextId - 1;
  }

  /**
   * Returns a page of the victims of rounds since a time (wall milliseconds) with an ID greater than `after`, oldest
   * first.
   */
  async evictions(
    since: number,
    after: number,
    signal: AbortSignal,
  ): Promise<EvictionPage & { coverage: RecordCoverage }> {
    const found = new EvictionList();
    let isComplete = false;
    for await (const record of this.records(since, after, signal)) {
      isComplete = found.add(record);
      if (isComplete) break;
    }
    const state = this.#state();
    if (state && !isComplete) found.endUnrecorded(state, state.at ?? since);
    return { ...found.page(), coverage: this.#records.coverage() };
  }

  /**
   * Returns a page of the plugins' readings, oldest first: the readings of at most 250 recorded rounds. The last page
   * also contains the readings in `recent`. Pass `next` as `after` for the next page; it is undefined on the last page.
   * The other fields are as in `RoundSpan`.
   */
  async readings(
    { since, until, after, stepMs }: Omit<RoundSpan, "limit">,
    recent: RecentReadings,
    signal: AbortSignal,
  ): Promise<{ rounds: RoundReadings[]; next?: number }> {
    const rounds: RoundReadings[] = [];
    const before = Math.min(until, (recent.oldestAt ?? Number.POSITIVE_INFINITY) - 1);
    const span = { since, until: before, stepMs, limit: READINGS_AT_ONCE };
    for (let last = after, read = 0; ; ) {
      const found = [...this.#records.answersBetween({ ...span, after: last })];
      for (const { at, plugins } of found) if (plugins) rounds.push({ at, readings: readingsOf(plugins) });
      if (found.length === 0) break;
      last = found.at(-1)!.id;
      read += found.length;
      if (read >= MOST_ROUNDS) return { rounds, next: last };
      await setImmediate(undefined, { signal });
    }
    return { rounds: [...rounds, ...recent.between(since, until, stepMs)] };
  }

  /** Returns complete rounds, oldest first, for export. Yields to the event loop regularly. */
  async *records(since: number, after: number, signal: AbortSignal): AsyncGenerator<RoundRecord> {
    let read = 0;
    for (const record of this.#records.roundsOneByOne({ since, after })) {
      yield record;
      if (++read % ROUNDS_AT_ONCE === 0) await setImmediate(undefined, { signal });
    }
  }
}
