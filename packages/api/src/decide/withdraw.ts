import { refusalReasons } from "../reasons/index.ts";
import { compareText } from "../text/index.ts";
import { answerOf, type PluginAnswers } from "./answers.ts";
import type { AskedPod } from "./asks.ts";
import type { Selection } from "./candidates.ts";
import type { Withdrawal } from "./decision.ts";
import { referenceTo } from "./pods.ts";
import { isDryRun } from "./policy.ts";
import type { EvictionsUnderWay } from "./release.ts";
import type { RoundInput } from "./round.ts";
import type { PendingEviction, QueuedEviction } from "./state.ts";

/** The input of `findWithdrawals`. */
export interface WithdrawalInput {
  round: Pick<RoundInput, "plugins" | "policy" | "state">;
  selection: Selection;
  /** The requests of plugins that are not in dry run, by UID. */
  asked: ReadonlyMap<string, AskedPod>;
  underWay: Pick<EvictionsUnderWay, "pending">;
  /** Pods that plugins named and that are not selected for them, by UID. */
  passedOver: ReadonlyMap<string, unknown>;
  /** UIDs of this round's victims and queued pods. */
  accepted: ReadonlySet<string>;
}

/**
 * Returns the withdrawals of evictions that earlier rounds decided. Pure.
 *
 * 1. A queued pod is withdrawn if it is no longer accepted.
 * 2. A started eviction is withdrawn if its plugin reports that the threshold is no longer met, no longer names the
 *    pod, or is in dry run, and no other plugin requests the pod. A failed or disconnected plugin withdraws nothing.
 * 3. A started eviction is also withdrawn if its pod became protected after the decision.
 * 4. An accepted eviction can't be withdrawn, nor can that of a pod that is already terminating. One that stops
 *    containers can until it has ended: a call to stop one may fail, and is not repeated then.
 * 5. An eviction is withdrawn once, and not after a restart of the agent, which only follows it (`isSettled`).
 */
export function findWithdrawals(input: WithdrawalInput): Withdrawal[] {
  const candidates = new Set(input.selection.candidates.map((pod) => pod.uid));
  const exclusions = new Map(input.selection.exclusions.map((exclusion) => [exclusion.uid, exclusion]));
  const withdrawals: Withdrawal[] = [];
  const add = (pod: PendingEviction | QueuedEviction, stage: Withdrawal["stage"], reason: string) => {
    withdrawals.push({ ...referenceTo(pod), stage, reason });
  };

  for (const pod of input.round.state.queue) {
    if (input.accepted.has(pod.uid) || !candidates.has(pod.uid)) continue;
    add(
      pod,
      "queued",
      input.asked.has(pod.uid) || input.passedOver.has(pod.uid)
        ? "the request is refused now"
        : "no plugin requests it any longer",
    );
  }
  const answers = new Map(input.round.plugins.map((plugin) => [plugin.plugin, plugin]));
  for (const pod of input.underWay.pending) {
    if (pod.isSettled || (pod.acceptedAt !== null && !pod.stopsContainers)) continue;
    const exclusion = exclusions.get(pod.uid);
    if (exclusion && exclusion.reason !== "terminating" && exclusion.reason !== "finished") {
      add(pod, "started", `the pod is protected since the decision: ${exclusion.detail}`);
    }
    if (exclusion || !candidates.has(pod.uid)) continue;
    const reason = isDryRun(input.round.policy, pod.plugin)
      ? refusalReasons.dryRun
      : whyWithdrawn(pod, answers.get(pod.plugin));
    if (reason !== null && !isStillAsked(pod, input.asked)) add(pod, "started", reason);
  }
  return withdrawals.sort((a, b) => compareText(a.uid, b.uid) || compareText(a.stage, b.stage));
}

function whyWithdrawn(pod: PendingEviction, answers: PluginAnswers | undefined): string | null {
  if (answers === undefined) return null;
  if (pod.source === "evictPods") {
    const answer = answerOf(answers.evictPods);
    if (answer === null || answer.pods.some((named) => named.pod.uid === pod.uid)) return null;
    return `${pod.plugin} no longer requests it`;
  }
  const threshold = answerOf(answers.threshold);
  if (threshold === null) return null;
  // Any scope counts, because a plugin may report the same shortage under changing scopes.
  const isMet = threshold.metType === "hard" || (threshold.metType === "soft" && pod.kind === "soft");
  return isMet ? null : `the threshold of ${pod.plugin} for ${pod.scope || "its value"} is no longer met`;
}

// A request of another plugin keeps an eviction if it is forced or of the same kind.
function isStillAsked(pod: PendingEviction, asked: ReadonlyMap<string, AskedPod>): boolean {
  const asks = asked.get(pod.uid)?.asks ?? [];
  return asks.some((ask) => ask.kind === "forced" || ask.kind === pod.kind);
}
