import { answerOf, type PluginAnswers } from "./answers.ts";
import type { AskedPod } from "./asks.ts";
import type { Selection } from "./candidates.ts";
import type { Withdrawal } from "./decision.ts";
import { referenceTo } from "./pods.ts";
import { isDryRun } from "./policy.ts";
import { compareText } from "./rank.ts";
import { refusalReasons } from "./refusals.ts";
import type { EvictionsUnderWay } from "./release.ts";
import type { RoundInput } from "./round.ts";
import type { PendingEviction, QueuedEviction } from "./state.ts";

/** What `findWithdrawals` looks at. */
export interface WithdrawalInput {
  round: Pick<RoundInput, "plugins" | "policy" | "state">;
  selection: Selection;
  /** What plugins outside of dry run ask for, by UID. */
  asked: ReadonlyMap<string, AskedPod>;
  underWay: Pick<EvictionsUnderWay, "pending" | "dropped">;
  /** UIDs of those that go or wait after this round. */
  accepted: ReadonlySet<string>;
}

/**
 * The pods of earlier rounds that shall not go after all. One that was handed over is called back when its plugin says
 * that the pressure is over, or no longer names the pod; a plugin that fails or is away has said nothing. A pod that is
 * terminating already can't be called back.
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
    add(pod, "queued", input.asked.has(pod.uid) ? "it is refused now" : "no plugin asks for it any longer");
  }
  const answers = new Map(input.round.plugins.map((plugin) => [plugin.plugin, plugin]));
  for (const pod of input.underWay.dropped) {
    if (input.accepted.has(pod.uid)) continue;
    add(pod, "begun", "it was not sent before the agent restarted, and no plugin has asked for it since");
  }
  for (const pod of input.underWay.pending) {
    // What was accepted can't be called back.
    if (pod.acceptedAt !== null) continue;
    const exclusion = exclusions.get(pod.uid);
    if (exclusion && exclusion.reason !== "terminating" && exclusion.reason !== "finished") {
      add(pod, "begun", `it is protected now: ${exclusion.detail}`);
    }
    if (exclusion || !candidates.has(pod.uid)) continue;
    const reason = isDryRun(input.round.policy, pod.plugin)
      ? refusalReasons.dryRun
      : whyNotWanted(pod, answers.get(pod.plugin));
    if (reason !== null && !isStillAsked(pod, input.asked)) add(pod, "begun", reason);
  }
  return withdrawals.sort((a, b) => compareText(a.uid, b.uid) || compareText(a.stage, b.stage));
}

function whyNotWanted(pod: PendingEviction, answers: PluginAnswers | undefined): string | null {
  if (answers === undefined) return null;
  if (pod.source === "evictPods") {
    const answer = answerOf(answers.evictPods);
    if (answer === null || answer.pods.some((named) => named.pod.uid === pod.uid)) return null;
    return `${pod.plugin} no longer asks for it`;
  }
  const threshold = answerOf(answers.threshold);
  if (threshold === null) return null;
  // Under whatever scope: a pressure that changes its name is still pressure.
  const isMet = threshold.metType === "hard" || (threshold.metType === "soft" && pod.kind === "soft");
  return isMet ? null : `the threshold of ${pod.plugin} for ${pod.scope || "its value"} is no longer met`;
}

// Another plugin's wish keeps an eviction going, if it is as strong.
function isStillAsked(pod: PendingEviction, asked: ReadonlyMap<string, AskedPod>): boolean {
  const asks = asked.get(pod.uid)?.asks ?? [];
  return asks.some((ask) => ask.kind === "forced" || ask.kind === pod.kind);
}
