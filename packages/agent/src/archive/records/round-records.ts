import {
  type ConditionChange,
  conditionChanges,
  conditionChangeText,
  type PodReference,
} from "@nodekeeper/api/decide";
import { type ExplainedRound, explainRound, type RoundRecord } from "@nodekeeper/api/records";
import { hardRefusals } from "../../eviction/index.ts";
import type { EvictionId, RecordContent } from "./archive-record.ts";
import { type DeclaredAttributes, podAttributes } from "./attributes.ts";

// Rounds in which nothing happens are not recorded. If the previous recorded round is older than this, a repeated
// refusal is exported again, because it may have ended in between.
const LONGEST_PAUSE_MS = 5 * 60_000;

/**
 * Builds the records of rounds: one for each pod with a decision that has a consequence, and one for each condition
 * that was set or cleared. Rounds must be passed in order.
 */
export class RoundRecords {
  /** Refusals and withdrawals of the last round. */
  #standing: ReadonlySet<string> = new Set();
  /** The time of the last round, milliseconds since the epoch. */
  #lastAt = 0;

  /** Returns the records of a round, with what distinguishes their IDs. */
  of(round: RoundRecord): { suffix: string; record: RecordContent }[] {
    const { input, decision } = round;
    const changes = conditionChanges(input.state.conditions, decision.state.conditions);
    return [
      ...this.#podsOf(round).map((pod) => ({ suffix: pod.uid, record: decisionRecord(round, pod) })),
      ...changes.map((change, place) => ({
        suffix: `condition-${place}`,
        record: conditionRecord(round, change),
      })),
    ];
  }

  #podsOf(round: RoundRecord): PodReference[] {
    const { input, decision } = round;
    const standing = new Set<string>();
    if (Math.abs(input.now - this.#lastAt) > LONGEST_PAUSE_MS) this.#standing = new Set();
    this.#lastAt = input.now;
    const isNew = (...key: string[]) => {
      const text = JSON.stringify(key);
      standing.add(text);
      return !this.#standing.has(text);
    };
    const known = new Map(
      [...input.state.pending, ...decision.ranking].map((pod) => [pod.uid, pod as PodReference]),
    );
    const ended = input.outcomes.map(({ uid, namespace, name }) =>
      namespace !== undefined && name !== undefined
        ? { uid, namespace, name }
        : (known.get(uid) ?? { uid, namespace: "", name: "" }),
    );
    const withdrawn = decision.withdrawals.filter(({ uid, stage }) => isNew("withdrawal", uid, stage));
    const refused = hardRefusals(round).filter(({ uid, plugin, reason }) => isNew(uid, plugin, reason));
    this.#standing = standing;
    const all = [...decision.victims, ...ended, ...withdrawn, ...refused];
    return [...new Map(all.map(({ uid, namespace, name }) => [uid, { uid, namespace, name }])).values()];
  }
}

function decisionRecord(round: RoundRecord, pod: PodReference): RecordContent {
  const body = explainRound(pod.uid, round);
  const { result, message, isWarning, attributes } = resultOf(body);
  return {
    event: "nodekeeper.eviction.decision",
    at: round.input.now,
    severity: isWarning ? "warn" : "info",
    message: `${pod.namespace}/${pod.name} ${message}`,
    body,
    attributes: {
      ...podAttributes(pod, body.pod),
      ...attributes,
      "nodekeeper.round": round.id,
      "nodekeeper.result": result,
    } satisfies DeclaredAttributes,
    eviction: evictionOf(pod.uid, body),
  };
}

interface Result {
  result: string;
  message: string;
  isWarning?: boolean;
  attributes?: DeclaredAttributes;
}

// Returns the result to record for a pod. If the round records the end of the pod's last eviction and selects it again,
// this is the selection.
function resultOf({ victim, outcome, withdrawals, refusals }: ExplainedRound): Result {
  if (victim) {
    const { plugin, scope, reason } = victim;
    const attributes = { "nodekeeper.plugin": plugin, "nodekeeper.scope": scope };
    return { result: "selected", message: `selected for eviction: ${reason}`, attributes };
  }
  if (outcome) {
    const { result, message } = outcome;
    return { result, message: `eviction ${result}: ${message}`, isWarning: result !== "terminated" };
  }
  const [withdrawal] = withdrawals;
  if (withdrawal)
    return { result: "withdrawing", message: `eviction no longer requested: ${withdrawal.reason}` };
  const [refusal] = refusals;
  const attributes = { "nodekeeper.plugin": refusal?.plugin, "nodekeeper.reason": refusal?.reason };
  return { result: "refused", message: `requested eviction refused: ${refusal?.message ?? ""}`, attributes };
}

function evictionOf(uid: string, { at, victim, outcome }: ExplainedRound): EvictionId | undefined {
  const selectedAt = victim ? at : outcome?.selectedAt;
  return selectedAt === undefined ? undefined : { uid, selectedAt };
}

function conditionRecord({ id, input }: RoundRecord, change: ConditionChange): RecordContent {
  return {
    event: "nodekeeper.eviction.condition",
    at: input.now,
    severity: "info",
    message: conditionChangeText(change),
    body: change,
    attributes: {
      "nodekeeper.round": id,
      "nodekeeper.plugin": change.condition.plugin,
      "nodekeeper.result": change.kind,
    } satisfies DeclaredAttributes,
  };
}
