import type { UnservedReason } from "../reasons/index.ts";
import { answerOf, type PluginAnswers, type TopAnswer } from "./answers.ts";
import type { Ask, MetThreshold } from "./decision.ts";
import type { EvictionPod } from "./pods.ts";
import { type EvictionPolicy, matchesName } from "./policy.ts";
import type { UnusableAnswers } from "./state.ts";
import { namesakeUidOf } from "./top-result.ts";
import { wholeNodeScopes } from "./whole-node-scopes.ts";

/**
 * The ranking selects a pod after this number of consecutive rounds in which a plugin named only pods that can't be
 * evicted.
 */
const FALLBACK_ROUNDS = 3;

/** The input of `fallbackFor`, for a plugin with a hard threshold that named only pods that can't be evicted. */
export interface FallbackSources {
  threshold: MetThreshold;
  top: TopAnswer;
  /** The pods that were offered to the plugin, in rank order. */
  offered: readonly EvictionPod[];
  plugins: readonly PluginAnswers[];
  policy: EvictionPolicy;
}

/** The pod that the ranking selects, or why it selects none. */
export type FallbackResult =
  | { pod: EvictionPod; marks: Pick<Ask, "selectedBy" | "fallback" | "reason"> }
  | { reason: Extract<UnservedReason, "namedIneligible" | "fallbackOff" | "scopeUnknown">; why: string };

/**
 * Selects a pod by the ranking for a plugin that named only pods that can't be evicted. Pure.
 *
 * 1. Not before the third consecutive round of this kind for the same scope.
 * 2. Only for plugins included in `policy.fallbackPlugins`.
 * 3. Only if the agent knows which pods belong to the scope: the plugin reported the candidates with its threshold, or
 *    the scope is one of `wholeNodeScopes`.
 * 4. Selects the lowest-ranked of the pods that were offered to the plugin. The reason states that the ranking selected
 *    it, and the UID by which the plugin named a pod of the same namespace and name.
 * @param reason the text of the threshold
 */
export function fallbackFor(sources: FallbackSources, rounds: number, reason: string): FallbackResult {
  const { threshold, top, offered, policy } = sources;
  const { plugin, scope } = threshold;
  if (!matchesName(policy.fallbackPlugins, plugin)) {
    return { reason: "fallbackOff", why: "the fallback to the ranking is off for this plugin" };
  }
  if (!wholeNodeScopes.has(scope) && !hasNarrowed(sources)) {
    return { reason: "scopeUnknown", why: `which pods belong to the scope ${scope} is not known` };
  }
  const [pod] = offered;
  if (rounds < FALLBACK_ROUNDS || pod === undefined) {
    return {
      reason: "namedIneligible",
      why: `round ${rounds} of ${FALLBACK_ROUNDS} before the ranking selects a pod`,
    };
  }
  const namesakeUid = namesakeUidOf(pod, top.pods);
  const namesake =
    namesakeUid === undefined ? "" : `; ${plugin} named a pod of this name with another UID, ${namesakeUid}`;
  const why = `selected by Nodekeeper's ranking: ${plugin} named only pods that can't be evicted in ${rounds} rounds in a row`;
  return {
    pod,
    marks: {
      selectedBy: "ranking",
      fallback: { rounds, ...(namesakeUid === undefined ? {} : { namesakeUid }) },
      reason: `${why}; ${reason}${namesake}`,
    },
  };
}

/**
 * Returns the number of consecutive rounds, including this one, in which the plugin named only pods that can't be
 * evicted for this scope.
 */
export function roundsInARow(
  { plugin, scope }: Pick<MetThreshold, "plugin" | "scope">,
  before: readonly UnusableAnswers[],
): number {
  const known = before.find((one) => one.plugin === plugin && (one.scope ?? scope) === scope);
  return 1 + (known?.rounds ?? 0);
}

function hasNarrowed({ plugins, threshold }: FallbackSources): boolean {
  const own = plugins.find(({ plugin }) => plugin === threshold.plugin);
  return own !== undefined && (answerOf(own.threshold)?.candidateUids.length ?? 0) > 0;
}
