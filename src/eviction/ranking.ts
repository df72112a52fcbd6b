import type { AskedPod } from "./asks.ts";
import type { Fate } from "./choose.ts";
import type { RankedCandidate } from "./decision.ts";
import { type EvictionPod, referenceTo } from "./pods.ts";
import { compareImportance } from "./rank.ts";
import { refusalReasons } from "./refusals.ts";

/** Every candidate, the least important first, with what became of it. `wished` includes wishes of plugins in dry run. */
export function rankCandidates(
  candidates: readonly EvictionPod[],
  wished: ReadonlyMap<string, AskedPod>,
  fates: ReadonlyMap<string, Fate>,
): RankedCandidate[] {
  const ranked = candidates.map((pod) => {
    const fate = fates.get(pod.uid);
    const ask = fate?.ask ?? wished.get(pod.uid)?.asks[0] ?? null;
    return { pod, fate, ask, scope: ask?.scope ?? null };
  });
  ranked.sort(compareImportance);
  return ranked.map(({ pod, fate, ask, scope }, index) => ({
    ...referenceTo(pod),
    rank: index + 1,
    qosLevel: pod.qosLevel,
    qosClass: pod.qosClass,
    priority: pod.priority,
    scope,
    kind: ask?.kind ?? null,
    outcome: fate?.outcome ?? (ask ? "refused" : "notAsked"),
    why: fate?.why ?? (ask ? refusalReasons.dryRun : "no plugin asked for it"),
  }));
}
