import { type RefusalReason, refusalReasons } from "../reasons/index.ts";
import type { AskedPod } from "./asks.ts";
import type { Verdict } from "./choose.ts";
import type { Ask, RankedCandidate } from "./decision.ts";
import type { Eligibility } from "./eligibility.ts";
import { type EvictionPod, referenceTo } from "./pods.ts";
import type { RankKeyName } from "./policy.ts";
import { rankOrder } from "./rank.ts";

interface RankInput {
  /** Includes requests of plugins in dry run. */
  requested: ReadonlyMap<string, AskedPod>;
  /** Candidates that plugins named and that are not selected for them, by UID. */
  passedOver: ReadonlyMap<string, RefusalReason>;
  verdicts: ReadonlyMap<string, Verdict>;
  ranking: readonly RankKeyName[];
}

/** Returns all candidates in rank order, each with the decision about it. Pure. */
export function rankCandidates(
  candidates: readonly EvictionPod[],
  { requested, passedOver, verdicts, ranking }: RankInput,
  { ineligible, last }: Pick<Eligibility, "ineligible" | "last">,
): RankedCandidate[] {
  const obstacles = new Map(ineligible.map(({ uid, message }) => [uid, message]));
  const ranked = candidates.map((pod) => {
    const verdict = verdicts.get(pod.uid);
    const ask = verdict?.ask ?? requested.get(pod.uid)?.asks[0] ?? null;
    return { pod, verdict, ask, scope: ask?.scope ?? null };
  });
  ranked.sort(rankOrder(ranking));
  return ranked.map(({ pod, verdict, ask, scope }, index) => ({
    ...referenceTo(pod),
    rank: index + 1,
    qosLevel: pod.qosLevel,
    qosClass: pod.qosClass,
    priority: pod.priority,
    scope,
    kind: ask?.kind ?? null,
    ...verdictOf(verdict, ask, obstacles.get(pod.uid), passedOver.get(pod.uid), last.has(pod.uid)),
  }));
}

function verdictOf(
  verdict: Verdict | undefined,
  ask: Ask | null,
  obstacle: string | undefined,
  passedOver: RefusalReason | undefined,
  isLast: boolean,
): Pick<RankedCandidate, "outcome" | "why"> {
  if (verdict) return { outcome: verdict.outcome, why: verdict.why };
  if (ask) return { outcome: "refused", why: refusalReasons.dryRun };
  if (obstacle !== undefined) return { outcome: "ineligible", why: `can't be evicted now: ${obstacle}` };
  if (passedOver !== undefined) return { outcome: "refused", why: refusalReasons[passedOver] };
  const why = isLast ? `no plugin requested it: ${refusalReasons.triedLast}` : "no plugin requested it";
  return { outcome: "notAsked", why };
}
