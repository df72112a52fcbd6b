import type { UnservedReason } from "../reasons/index.ts";
import type { Answered, TopAnswer } from "./answers.ts";
import type { TopQuestion } from "./decision.ts";
import type { EvictionPod, PodReference } from "./pods.ts";
import type { PreparedRound } from "./prepare.ts";

/**
 * The result of a GetTopEvictionPods call for a hard threshold. For any kind except `named`, none of the named pods is
 * selected; the ranking may select one: see `fallbackFor`.
 */
export type TopResult =
  | { kind: "named" }
  | { kind: Extract<UnservedReason, "failed" | "late" | "namedNone" | "namedIneligible">; message: string };

/** The pods that a plugin named, resolved. */
export interface NamedPods {
  /** The number of pods in the answer. */
  count: number;
  /** The number of pods in the answer whose UID is unknown on this node. */
  unknown: number;
  /** The named pods that are candidates. */
  candidates: readonly EvictionPod[];
}

/**
 * Classifies the result of a call for a hard threshold. Pure. A candidate can be evicted now if it was offered, or if
 * it is eligible and not tried last.
 */
export function topResultOf(
  top: Answered<TopAnswer>,
  { count, unknown, candidates }: NamedPods,
  offered: ReadonlySet<string>,
  { eligible, last }: PreparedRound["eligibility"],
): TopResult {
  if ("failure" in top) return { kind: top.late ? "late" : "failed", message: top.failure };
  if (count === 0) return { kind: "namedNone", message: `named none of ${pods(offered.size)}` };
  const uids = new Set(eligible.map(({ uid }) => uid));
  const isUsable = ({ uid }: EvictionPod) => offered.has(uid) || (uids.has(uid) && !last.has(uid));
  if (candidates.some(isUsable)) return { kind: "named" };
  const strangers = unknown > 0 ? ` (${unknown} with an unknown UID)` : "";
  return { kind: "namedIneligible", message: `named ${pods(count)}, none can be evicted now${strangers}` };
}

/** Returns the pods offered to a plugin in a GetTopEvictionPods call. */
export function offeredPods(
  { candidateUids }: TopQuestion,
  { eligible }: PreparedRound["eligibility"],
): EvictionPod[] {
  if (candidateUids === null) return [...eligible];
  const uids = new Set(candidateUids);
  return eligible.filter(({ uid }) => uids.has(uid));
}

/** Returns another UID that the plugin named with the namespace and name of `pod`; undefined if there is none. */
export function namesakeUidOf(pod: EvictionPod, named: readonly PodReference[]): string | undefined {
  return named.find(
    ({ uid, namespace, name }) => uid !== pod.uid && namespace === pod.namespace && name === pod.name,
  )?.uid;
}

function pods(count: number): string {
  return count === 1 ? "1 pod" : `${count} pods`;
}
