import {
  type CallFailure,
  type Decision,
  type EvictionOutcome,
  isUncertain,
  type RefusalReason,
  refusalReasons,
} from "../decide/index.ts";

// Tenths of a second are meaningless for a container that started a day earlier.
const LONG_OFFSET_MS = 600_000;

/** "1 round", "3 rounds". */
export function counted(count: number, word: string, plural = `${word}s`): string {
  return `${count} ${count === 1 ? word : plural}`;
}

/** Formats an offset: "+0.4 s", "+14.9 s", from ten minutes on "+3h"; "-2.0 s" if negative. */
export function offsetOf(ms: number): string {
  const distance = Math.abs(ms);
  return `${ms < 0 ? "-" : "+"}${distance < LONG_OFFSET_MS ? secondsOf(distance) : age(distance)}`;
}

/** "14.9 s" */
export function secondsOf(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Formats a duration in milliseconds as kubectl prints ages: "12s", "3m", "5h", "2d". */
export function age(ms: number): string {
  const seconds = Math.max(Math.round(ms / 1000), 0);
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** Returns the gRPC method of a failed call, which is recorded as `thresholdMet`: "ThresholdMet". */
export function methodOf(call: CallFailure["call"]): string {
  return `${call.charAt(0).toUpperCase()}${call.slice(1)}`;
}

/**
 * Formats a failed call: "ThresholdMet of py-soft: connection refused", "late: ThresholdMet of py-soft: deadline of 5 s
 * exceeded".
 */
export function failureText({ plugin, call, failure, late }: CallFailure): string {
  return `${late ? "late: " : ""}${methodOf(call)} of ${plugin}: ${failure}`;
}

/** Formats a reason with its detail: "pods with a critical priority are not evicted (priority 2000000000)". */
export function reasonText(reason: string, detail: string): string {
  const rule = (refusalReasons as Readonly<Record<string, string>>)[reason] ?? reason;
  return detail.startsWith(rule) ? detail : `${rule} (${detail})`;
}

/** Formats a victim's grace period in seconds. Null: the pod's own, which is `own`, or undefined if unknown. */
export function graceText(seconds: number | null, own?: number): string {
  if (seconds !== null) return `${seconds} s`;
  return own === undefined ? "that of the pod spec" : `${own} s (from the pod spec)`;
}

const outcomeWords: Readonly<Record<EvictionOutcome["result"], string>> = {
  terminated: "evicted",
  superseded: "not evicted by Nodekeeper",
  unknown: "not known whether evicted by Nodekeeper",
  overdue: "eviction accepted",
  failed: "not evicted",
  withdrawn: "withdrawn",
};

/** Formats the outcome of an eviction: "evicted: pod deleted", "not evicted: no success after 3 attempts: ...". */
export function outcomeText(
  outcome: Pick<EvictionOutcome, "result" | "message" | "sent" | "sentBefore" | "acceptedAt">,
): string {
  const { result, message } = outcome;
  const words = isUncertain(outcome)
    ? `${result === "failed" ? "given up" : "withdrawn"}, ${outcomeWords.unknown}`
    : (outcomeWords[result] ?? result);
  return `${words}: ${message}`;
}

// Short forms of `refusalReasons`, for counts.
const refusalWords: Readonly<Record<RefusalReason, string>> = {
  unknownPod: "unknown pod",
  nameMismatch: "name mismatch",
  otherNode: "on another node",
  finished: "finished",
  terminating: "already terminating",
  mirror: "mirror pod",
  static: "static pod",
  critical: "critical priority",
  systemQos: "QoS level system_cores",
  daemonSet: "DaemonSet pod",
  skipLabel: "protected by a label",
  skipAnnotation: "protected by an annotation",
  overTopN: "more pods than requested",
  triedLast: "tried last after a failed eviction",
  dryRun: "plugin in dry run",
  pending: "eviction in progress",
  stopped: "containers just stopped",
  paused: "retry pending after a failed attempt",
  notifyOnly: "notified only",
  pendingRelease: "earlier eviction not ended",
  cooldown: "cooldown",
  nodeLimit: "node limit",
  namespaceLimit: "namespace limit",
  ownerLimit: "owner limit",
  notLeastImportant: "ranked higher",
  overBurst: "queued, over the burst limit",
};

/**
 * Returns a refusal reason in a few words: "ranked higher". Unknown reasons of other versions are returned unchanged.
 */
export function refusalWord(reason: string): string {
  return (refusalWords as Readonly<Record<string, string>>)[reason] ?? reason;
}

/** Formats the numbers of refusals: "3 (ranked higher)" for each reason, in their order. */
export function refusalCountTexts(counts: Decision["refusalCounts"]): string[] {
  return Object.entries(counts).map(([reason, count]) => `${count} (${refusalWord(reason)})`);
}
