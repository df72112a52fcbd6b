import { answerOf } from "./answers.ts";
import { evictionRecordsOf } from "./candidate-records.ts";
import { type Selection, selectCandidates } from "./candidates.ts";
import type { HeldReason, MetThreshold, TopQuestion } from "./decision.ts";
import { type Eligibility, eligibilityOf } from "./eligibility.ts";
import { inWindow, LimitCounter } from "./limits.ts";
import { PressureGate } from "./pressure.ts";
import { type EvictionsUnderWay, reconcileEvictions } from "./release.ts";
import type { RoundInput } from "./round.ts";
import type { ThresholdTimer } from "./state.ts";
import { advanceThresholds } from "./thresholds.ts";

/** The results computed from a round's first answers, before GetTopEvictionPods is called and before the decision. */
export interface PreparedRound {
  selection: Selection;
  timers: ThresholdTimer[];
  /** Sorted by plugin. Each threshold on hold has the reason. */
  met: MetThreshold[];
  underWay: EvictionsUnderWay;
  eligibility: Eligibility;
  /** The GetTopEvictionPods calls to make, sorted by plugin. */
  questions: TopQuestion[];
}

/**
 * Prepares a round. Pure.
 * @param selection the selected candidates, if the caller already has them
 */
export function prepareRound(
  input: RoundInput,
  selection: Selection = selectCandidates(input.pods, input.nodeName, input.policy.skip),
): PreparedRound {
  const { now, policy } = input;
  const underWay = reconcileEvictions(input);
  const eligibility = eligibilityOf(selection.candidates, underWay, policy, now);
  const { timers, met } = advanceThresholds(input);
  const gate = new PressureGate(underWay, policy.cooldownMs, now);
  const nodeLimit = new LimitCounter(policy.limits, underWay.recent, now).forbidsAny();
  const offers = new Map(input.plugins.map(({ plugin, threshold }) => [plugin, answerOf(threshold)]));

  const questions: TopQuestion[] = [];
  const held = met.map((threshold): MetThreshold => {
    const { plugin, scope, metType, confirmed } = threshold;
    if (!confirmed) return threshold;
    const kind = metType === "hard" ? "forced" : "soft";
    const hold = gate.holds({ plugin, scope, source: "threshold", kind }) ?? nodeLimit;
    if (hold) return { ...threshold, held: hold };
    const offered = offeredUids(eligibility, selection, offers.get(plugin)?.candidateUids ?? []);
    if (offered?.length === 0) return { ...threshold, held: whyNoPod(eligibility) };
    questions.push({ plugin, scope, topN: metType === "hard" ? 1 : 0, candidateUids: offered });
    return threshold;
  });
  if (questions.length > 0) {
    const counted = inWindow(underWay.recent, policy.limits, now);
    const records = evictionRecordsOf(selection, eligibility, counted);
    if (records.length > 0) for (const question of questions) question.records = records;
  }
  return { selection, timers, met: held, underWay, eligibility, questions };
}

// Returns null if all candidates are offered, because plugins share their encoding.
function offeredUids(
  { eligible, last }: Eligibility,
  { candidates }: Selection,
  requested: readonly string[],
): string[] | null {
  const chosen = new Set(requested);
  const uids = eligible.flatMap(({ uid }) => (requested.length === 0 || chosen.has(uid) ? [uid] : []));
  const first = uids.filter((uid) => !last.has(uid));
  const offered = first.length > 0 ? first : uids;
  return offered.length === candidates.length && candidates.length > 0 ? null : offered;
}

function whyNoPod({ ineligible }: Eligibility): { reason: HeldReason; until: number | null } {
  const ends = ineligible.flatMap(({ until }) => until ?? []);
  return { reason: "noEligiblePod", until: ends.length > 0 ? Math.min(...ends) : null };
}
