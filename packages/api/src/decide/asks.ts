import { type RefusalReason, refusalReasons } from "../reasons/index.ts";
import { compareText } from "../text/index.ts";
import {
  answerOf,
  type EvictPodAnswer,
  type PluginAnswers,
  type TopAnswer,
  type TopAnswers,
} from "./answers.ts";
import type { Selection } from "./candidates.ts";
import type { Ask, MetThreshold, UnservedThreshold } from "./decision.ts";
import { fallbackFor, roundsInARow } from "./fallback.ts";
import { checkGrace } from "./grace.ts";
import type { EvictionPod, PodReference } from "./pods.ts";
import type { EvictionPolicy, RankKeyName } from "./policy.ts";
import type { PreparedRound } from "./prepare.ts";
import { rankOrder } from "./rank.ts";
import type { RefusalLog } from "./refusal-log.ts";
import type { UnusableAnswers } from "./state.ts";
import { thresholdText } from "./threshold-text.ts";
import { type NamedPods, offeredPods, type TopResult, topResultOf } from "./top-result.ts";

/** A candidate with the requests for it; never empty. The first request determines the eviction. */
export interface AskedPod {
  pod: EvictionPod;
  asks: Ask[];
}

/** The input of `collectAsks`. */
export interface AskSources {
  plugins: readonly PluginAnswers[];
  tops: readonly TopAnswers[];
  policy: EvictionPolicy;
  prepared: PreparedRound;
  unusable: readonly UnusableAnswers[];
}

/** The requests of all plugins, and the plugins with a threshold for which no pod may be selected. */
export interface CollectedAsks {
  /** By UID. */
  asked: Map<string, AskedPod>;
  /** Plugins that named only pods that can't be evicted, sorted. */
  unusable: UnusableAnswers[];
  /** Candidates that plugins named for hard thresholds but that are passed over, with the reason, by UID. */
  passedOver: ReadonlyMap<string, RefusalReason>;
  /** Why no pod may be selected for a confirmed hard threshold, by plugin. */
  unserved: Map<string, Pick<UnservedThreshold, "reason" | "message">>;
}

/**
 * Collects and checks the requests of all plugins. Pure, except that it adds to `refusals`.
 *
 * 1. A request for a pod that is not a candidate is refused with the reason of its exclusion. Requests of plugins in
 *    dry run are collected like others.
 * 2. GetTopEvictionPods answers count only for a threshold that is confirmed in this round.
 * 3. A failed or late call and an answer without pods select no pod. They also reset the number of consecutive rounds
 *    in which the plugin named only pods that can't be evicted: see `fallbackFor`.
 */
export function collectAsks(sources: AskSources, refusals: RefusalLog): CollectedAsks {
  const { selection, met, questions, eligibility } = sources.prepared;
  const check = new AnswerCheck(selection, refusals);
  const asked = new Map<string, AskedPod>();
  const add = (pod: EvictionPod, ask: Ask) => {
    const others = asked.get(pod.uid);
    if (others) others.asks.push(ask);
    else asked.set(pod.uid, { pod, asks: [ask] });
  };
  for (const { plugin, evictPods } of byPlugin(sources.plugins)) {
    for (const named of distinct(answerOf(evictPods)?.pods ?? [])) {
      const pod = check.candidate(plugin, named.pod);
      if (pod) add(pod, askByName(plugin, named, sources.policy));
    }
  }
  const unusable: UnusableAnswers[] = [];
  const unserved: CollectedAsks["unserved"] = new Map();
  const eligible = new Set(eligibility.eligible.map(({ uid }) => uid));
  const confirmed = new Map(
    met.flatMap((threshold) => (threshold.confirmed ? [[threshold.plugin, threshold]] : [])),
  );
  for (const { plugin, top } of byPlugin(sources.tops)) {
    const threshold = confirmed.get(plugin);
    if (threshold === undefined) continue;
    const answer = answerOf(top);
    const question = questions.find((one) => one.plugin === plugin);
    const offered = question ? offeredPods(question, eligibility) : [];
    const uids = new Set(offered.map(({ uid }) => uid));
    const compare = forScope(sources.policy.ranking, threshold.scope);
    const { pods, named } = check.topPods(answer, threshold, uids, compare);
    const isHard = threshold.metType === "hard" && question !== undefined;
    const result = isHard ? topResultOf(top, named, uids, eligibility) : NAMED;
    // Without it, the ranking may select another pod for the same threshold. A pod that can't be evicted now is refused
    // for that reason.
    const isPostponed = ({ uid }: EvictionPod) =>
      result.kind !== "named" && eligible.has(uid) && eligibility.last.has(uid);
    for (const pod of pods) {
      if (isPostponed(pod)) check.passOver(plugin, pod, "triedLast");
      else add(pod, askByThreshold(answer, threshold, sources.policy));
    }
    if (result.kind === "named") continue;
    unserved.set(plugin, { reason: result.kind, message: result.message });
    if (result.kind !== "namedIneligible" || answer === null) continue;
    const rounds = roundsInARow(threshold, sources.unusable);
    unusable.push({ plugin, scope: threshold.scope, rounds });
    const ask = askByThreshold(null, threshold, sources.policy);
    offered.sort(compare);
    const fallback = fallbackFor({ ...sources, threshold, top: answer, offered }, rounds, ask.reason);
    if ("pod" in fallback) {
      unserved.delete(plugin);
      add(fallback.pod, { ...ask, ...fallback.marks });
    } else unserved.set(plugin, { reason: fallback.reason, message: `${result.message}; ${fallback.why}` });
  }
  for (const { asks } of asked.values()) asks.sort(compareAsks);
  return { asked, unusable, passedOver: check.passedOver, unserved };
}

const NAMED: TopResult = { kind: "named" };

// Returns the rank order of pods requested for the same scope.
function forScope(
  ranking: readonly RankKeyName[],
  scope: string,
): (a: EvictionPod, b: EvictionPod) => number {
  const compare = rankOrder(ranking);
  return (a, b) => compare({ pod: a, scope }, { pod: b, scope });
}

function askByName(plugin: string, named: EvictPodAnswer, policy: EvictionPolicy): Ask {
  const { seconds, problem } = checkGrace(named.gracePeriodSeconds, policy.grace);
  return {
    plugin,
    source: "evictPods",
    kind: named.force ? "forced" : "soft",
    scope: named.force ? "force" : "soft",
    reason: named.reason,
    threshold: null,
    gracePeriodSeconds: seconds,
    graceProblem: problem,
  };
}

function askByThreshold(answer: TopAnswer | null, met: MetThreshold, policy: EvictionPolicy): Ask {
  const { seconds, problem } = checkGrace(answer?.gracePeriodSeconds ?? null, policy.grace);
  const { plugin, scope, metType, thresholdValue, observedValue, operator, unit } = met;
  return {
    plugin,
    source: "threshold",
    kind: metType === "hard" ? "forced" : "soft",
    scope,
    reason: thresholdText(scope, met),
    threshold: { thresholdValue, observedValue, operator, ...(unit ? { unit } : {}) },
    gracePeriodSeconds: seconds,
    graceProblem: problem,
  };
}

/** Resolves the pods in answers to candidates, or refuses them. */
class AnswerCheck {
  readonly #candidates: ReadonlyMap<string, EvictionPod>;
  readonly #exclusions: ReadonlyMap<string, Selection["exclusions"][number]>;
  readonly #refusals: RefusalLog;
  readonly passedOver = new Map<string, RefusalReason>();

  constructor(selection: Selection, refusals: RefusalLog) {
    this.#candidates = new Map(selection.candidates.map((pod) => [pod.uid, pod]));
    this.#exclusions = new Map(selection.exclusions.map((exclusion) => [exclusion.uid, exclusion]));
    this.#refusals = refusals;
  }

  candidate(plugin: string, named: PodReference): EvictionPod | null {
    const found = this.#candidates.get(named.uid) ?? this.#exclusions.get(named.uid);
    if (found === undefined) {
      this.#refusals.add(plugin, named, "unknownPod");
      return null;
    }
    // A plugin may send only the UID. If it sends a name or namespace, that must match.
    if (differs(named.name, found.name) || differs(named.namespace, found.namespace)) {
      this.#refusals.add(
        plugin,
        named,
        "nameMismatch",
        `${refusalReasons.nameMismatch}: ${found.namespace}/${found.name}`,
      );
      return null;
    }
    if ("reason" in found) {
      this.#refusals.add(plugin, found, found.reason, found.detail);
      return null;
    }
    return found;
  }

  /**
   * Returns the candidates that an answer names, and refuses the other pods. A hard threshold selects one pod (topN 1):
   * the lowest-ranked of the named pods that were offered, or of all named candidates if none was offered.
   */
  topPods(
    answer: TopAnswer | null,
    { plugin, metType }: MetThreshold,
    offered: ReadonlySet<string>,
    compare: (a: EvictionPod, b: EvictionPod) => number,
  ): { pods: EvictionPod[]; named: NamedPods } {
    const names = [...(answer?.pods ?? [])].sort(comparePods);
    const found = names.map((pod) => this.candidate(plugin, pod));
    const pods = [...new Set(found.filter((pod) => pod !== null))];
    const unknown = names.filter(({ uid }) => !this.#knows(uid)).length;
    const named = { count: names.length, unknown, candidates: [...pods] };
    if (metType !== "hard") return { pods, named };
    const eligibleFirst = (pod: EvictionPod) => (offered.has(pod.uid) ? 0 : 1);
    pods.sort((a, b) => eligibleFirst(a) - eligibleFirst(b) || compare(a, b));
    for (const pod of pods.slice(1)) this.passOver(plugin, pod, "overTopN");
    return { pods: pods.slice(0, 1), named };
  }

  passOver(plugin: string, pod: EvictionPod, reason: RefusalReason): void {
    this.#refusals.add(plugin, pod, reason);
    this.passedOver.set(pod.uid, reason);
  }

  // Whether a pod of this node, candidate or not, has this UID.
  #knows(uid: string): boolean {
    return this.#candidates.has(uid) || this.#exclusions.has(uid);
  }
}

function differs(named: string, real: string): boolean {
  return named !== "" && named !== real;
}

function byPlugin<T extends { plugin: string }>(answers: readonly T[]): T[] {
  return [...answers].sort((a, b) => compareText(a.plugin, b.plugin));
}

function comparePods(a: PodReference, b: PodReference): number {
  return compareText(a.uid, b.uid) || compareText(a.namespace, b.namespace) || compareText(a.name, b.name);
}

// Reduces the requests for a pod that an answer names several times to one of each kind, with the longest grace period;
// the pod's own if any of them has none.
function distinct(named: readonly EvictPodAnswer[]): EvictPodAnswer[] {
  const sorted = [...named].sort(
    (a, b) =>
      comparePods(a.pod, b.pod) ||
      Number(b.force) - Number(a.force) ||
      compareGrace(b.gracePeriodSeconds, a.gracePeriodSeconds) ||
      compareText(a.reason, b.reason),
  );
  return sorted.filter(({ pod, force }, index) => {
    const before = sorted[index - 1];
    return before === undefined || before.force !== force || comparePods(before.pod, pod) !== 0;
  });
}

function compareGrace(a: number | null, b: number | null): number {
  const length = (grace: number | null) =>
    grace !== null && Number.isFinite(grace) ? grace : Number.MAX_VALUE;
  return length(a) - length(b) || compareText(`${a}`, `${b}`);
}

// Forced before soft, then in an order that depends only on the content of the requests.
function compareAsks(a: Ask, b: Ask): number {
  return (
    compareText(a.kind, b.kind) ||
    compareText(a.plugin, b.plugin) ||
    compareText(a.source, b.source) ||
    compareText(a.scope, b.scope) ||
    compareText(a.reason, b.reason) ||
    (a.gracePeriodSeconds ?? -1) - (b.gracePeriodSeconds ?? -1) ||
    compareText(a.graceProblem ?? "", b.graceProblem ?? "")
  );
}
