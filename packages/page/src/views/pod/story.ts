import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { Verdict } from "@nodekeeper/api/wording";
import type { Tone } from "../../parts/badge.tsx";

export type Explanation = ApiAnswers["eviction/explain"];
export type ExplainedRound = Explanation["rounds"][number];

type RuntimePod = ApiAnswers["pods"]["items"][number];

/** Returns the last recorded state of the pod. Undefined if it was not recorded. */
export function recordedPod({ rounds, history }: Explanation) {
  return rounds.findLast(({ pod }) => pod !== null)?.pod ?? history?.pod;
}

/** Sorts pods of the same namespace and name newest first. The API returns them by UID. */
export function newestFirst(named: readonly RuntimePod[]): RuntimePod[] {
  const createdAt = ({ sandboxes: [newest] }: RuntimePod) => newest?.createdAt ?? 0;
  return named.toSorted((a, b) => createdAt(b) - createdAt(a));
}

/**
 * Returns the pod in the container runtime, among those of its name. A static pod has another UID there than its mirror
 * pod in the API server.
 */
export function runtimePod(
  named: readonly RuntimePod[],
  uid: string | undefined,
  isMirror: boolean,
): RuntimePod | undefined {
  return named.find((pod) => pod.uid === uid) ?? (isMirror ? named[0] : undefined);
}

/**
 * Returns the round that the verdict is about: the last that selected the pod, or else the last with a request for it.
 */
export function decidingRound({ rounds }: Explanation): ExplainedRound | undefined {
  return (
    rounds.findLast(({ victim }) => victim !== null) ??
    rounds.findLast(({ dryRunVictim, refusals }) => dryRunVictim !== null || refusals.length > 0) ??
    rounds.at(-1)
  );
}

/** Whether the pod's last eviction is in progress, so that more steps follow. */
export function isUnderWay({ rounds }: Explanation): boolean {
  const chosen = rounds.findLast(({ victim }) => victim !== null);
  if (!chosen) return false;
  return !rounds.some(
    ({ id, outcome }) => id > chosen.id && outcome !== null && outcome.result !== "overdue",
  );
}

/** The verdict in a word or two. */
export function stampOf(explanation: Explanation, { kind }: Verdict): { tone: Tone; text: string } {
  if (kind === "evicted") return { tone: "bad", text: "Evicted by Nodekeeper" };
  if (kind === "kept") return { tone: "ok", text: "Not evicted" };
  const { history } = explanation;
  if (history?.leftAt != null) return { tone: "warn", text: "Deleted" };
  if (isUnderWay(explanation)) return { tone: "warn", text: "Eviction in progress" };
  if (history && (history.ending.phase === "Failed" || history.ending.phase === "Succeeded"))
    return { tone: "warn", text: "Ended" };
  return { tone: "warn", text: "Selected, not evicted" };
}
