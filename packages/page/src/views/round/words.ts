import { thresholdText } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { age, counted, graceText, outcomeText, whyNoPodText } from "@nodekeeper/api/wording";

export type RoundRecord = ApiAnswers["eviction/records"]["records"][number];
type Decision = RoundRecord["decision"];
type Met = Decision["thresholds"][number];

/** Summarizes what a round decided: the victims, or why there are none. */
export function sentenceOf({ input, decision }: RoundRecord): string {
  const { victims, dryRunVictims, withdrawals, refusals, refusalCounts, thresholds } = decision;
  const dry =
    dryRunVictims.length > 0
      ? ` ${counted(dryRunVictims.length, "pod")} more in dry run, only recorded.`
      : "";
  if (victims.length > 0) return `${counted(victims.length, "pod")} selected for eviction.${dry}`;
  if (dry) return `No pod is evicted.${dry.replace(" more", " selected")}`;
  const none = "No pod was selected";
  if (withdrawals.length > 0) return `${none}, and ${counted(withdrawals.length, "eviction")} withdrawn.`;
  const refused = Object.values(refusalCounts).reduce((sum, count) => sum + (count ?? 0), 0);
  if (refused + refusals.length > 0)
    return `${none}: ${counted(Math.max(refused, refusals.length), "request")} not granted.`;
  if (thresholds.some(({ held }) => held)) return `${none}: a met threshold is on hold.`;
  if (thresholds.some(({ confirmed }) => !confirmed))
    return `${none}: a threshold is met, but its grace period is not over.`;
  if (thresholds.some(({ unserved }) => unserved))
    return `${none}: a threshold is met, and no pod may be selected for it.`;
  if (thresholds.length > 0) return `${none}: a threshold is met, and no plugin named a pod.`;
  if (input.outcomes.length > 0) return `${none}; ${counted(input.outcomes.length, "eviction")} ended.`;
  return `${none}; conditions of the node changed.`;
}

/**
 * Describes the consequence of a threshold: "met for 12s; on hold: cooldown …". If `met` is undefined, it was not met.
 */
export function consequenceOf(met: Met | undefined, now: number): string {
  if (!met) return "not met";
  const { since, gracePeriodSeconds, confirmed } = met;
  const lasting = `met for ${age(now - since)}`;
  if (!confirmed) return `${lasting}; counts after its grace period of ${gracePeriodSeconds} s`;
  return `${lasting}; ${whyNoPodText(met, now) ?? "the plugin was asked for pods"}`;
}

/** What a plugin reported in a round, in words. */
interface Reading {
  plugin: string;
  observed: string;
  /** "hard" or "soft". Empty if no threshold is met. */
  type: "hard" | "soft" | "";
  consequence: string;
  /** How many pods it requested by name, and with force. */
  named: { pods: number; forced: number };
}

/** Returns what each plugin reported against its threshold, and what followed. */
export function readingsOf({ input, decision }: RoundRecord): Reading[] {
  return input.plugins.map(({ plugin, threshold, evictPods }) => {
    const pods = "answer" in evictPods ? evictPods.answer.pods : [];
    const named = { pods: pods.length, forced: pods.filter(({ force }) => force).length };
    if (!("answer" in threshold))
      return { plugin, named, observed: "no answer", type: "", consequence: "see the failed calls" };
    const { scope, metType, observedValue } = threshold.answer;
    const isMet = metType !== "none";
    const met = decision.thresholds.find((one) => one.plugin === plugin && one.scope === scope);
    return {
      plugin,
      named,
      observed:
        observedValue === null && !isMet ? "no value reported" : thresholdText(scope, threshold.answer),
      type: isMet ? metType : "",
      consequence: consequenceOf(isMet ? met : undefined, input.now),
    };
  });
}

/** A pod with a decision other than its rank. */
interface DecidedPod {
  pod: { uid: string; namespace: string; name: string };
  what: string;
  /** Empty if no plugin requested it. */
  plugins: readonly string[];
  why: string;
  tone: "bad" | "warn" | "quiet";
}

/** Returns victims in order, then dry-run victims, withdrawn or ended evictions, and pods that are only notified. */
export function decidedPods({ input, decision }: RoundRecord): DecidedPod[] {
  const pending = new Map(input.state.pending.map((pod) => [pod.uid, pod]));
  const grace = ({ uid, gracePeriodSeconds }: Decision["victims"][number]) =>
    graceText(gracePeriodSeconds, input.pods.find((pod) => pod.uid === uid)?.gracePeriodSeconds);
  const ofVictim = (what: string, tone: DecidedPod["tone"]) => (victim: Decision["victims"][number]) => ({
    pod: victim,
    what,
    plugins: [...new Set(victim.asks.map(({ plugin }) => plugin))],
    why: `${victim.asks.map(({ kind, reason }) => `${kind}: ${reason}`).join("; ")}. Grace period: ${grace(victim)}`,
    tone,
  });
  return [
    ...decision.victims.map(ofVictim("selected", "bad")),
    ...decision.dryRunVictims.map(ofVictim("dry run: only recorded", "warn")),
    ...decision.withdrawals.map((one) => ({
      pod: one,
      what: "withdrawn",
      plugins: [],
      why: one.reason,
      tone: "warn" as const,
    })),
    ...input.outcomes.map((outcome) => {
      const { uid, namespace = "", name = "" } = { ...pending.get(outcome.uid), ...outcome };
      const before = pending.get(uid);
      return {
        pod: { uid, namespace, name },
        what: `eviction of an earlier round ${outcome.result === "overdue" ? "is overdue" : "ended"}`,
        plugins: before ? [before.plugin] : [],
        why: outcomeText(outcome),
        tone: "quiet" as const,
      };
    }),
    ...decision.notifications.map((one) => ({
      pod: one,
      what: "notified, not evicted",
      plugins: [one.plugin],
      why: one.reason,
      tone: "quiet" as const,
    })),
  ];
}

/** Returns the number of refused requests beyond those listed. At most 200 per plugin are recorded. */
export function unlistedRefusals({ refusals, refusalCounts }: Decision): number {
  const all = Object.values(refusalCounts).reduce((sum, count) => sum + (count ?? 0), 0);
  return Math.max(all - refusals.length, 0);
}
