import {
  answerOf,
  type EvictPodAnswer,
  type PluginAnswers,
  type TopAnswer,
  type TopAnswers,
} from "./answers.ts";
import type { Selection } from "./candidates.ts";
import type { Ask, MetThreshold } from "./decision.ts";
import { checkGrace } from "./grace.ts";
import type { EvictionPod, PodReference } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import { compareImportance, compareText } from "./rank.ts";
import type { RefusalLog } from "./refusal-log.ts";
import { refusalReasons } from "./refusals.ts";

/** The wishes for one candidate, the one it counts for first; never empty. */
export interface AskedPod {
  pod: EvictionPod;
  asks: Ask[];
}

/** What `collectAsks` looks at. */
export interface AskSources {
  plugins: readonly PluginAnswers[];
  tops: readonly TopAnswers[];
  thresholds: readonly MetThreshold[];
  selection: Selection;
  policy: EvictionPolicy;
}

/**
 * All that plugins ask for, by UID, checked: a pod that is no candidate is refused with the reason why it is none.
 * Plugins in dry run are collected like others. Top pods count only for a threshold confirmed in this round.
 */
export function collectAsks(sources: AskSources, refusals: RefusalLog): Map<string, AskedPod> {
  const check = new AnswerCheck(sources.selection, refusals);
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
  const confirmed = new Map(
    sources.thresholds.flatMap((threshold) => (threshold.confirmed ? [[threshold.plugin, threshold]] : [])),
  );
  for (const { plugin, top } of byPlugin(sources.tops)) {
    const answer = answerOf(top);
    const threshold = confirmed.get(plugin);
    if (answer === null || threshold === undefined) continue;
    for (const pod of topPods(plugin, answer, threshold, check, refusals)) {
      add(pod, askByThreshold(answer, threshold, sources.policy));
    }
  }
  for (const { asks } of asked.values()) asks.sort(compareAsks);
  return asked;
}

// A hard threshold asked for one pod: of more than that, the least important is taken.
function topPods(
  plugin: string,
  answer: TopAnswer,
  { metType, scope }: MetThreshold,
  check: AnswerCheck,
  refusals: RefusalLog,
): EvictionPod[] {
  const named = [...answer.pods].sort(comparePods).map((pod) => check.candidate(plugin, pod));
  const pods = [...new Set(named.filter((pod) => pod !== null))];
  if (metType !== "hard") return pods;
  pods.sort((a, b) => compareImportance({ pod: a, scope }, { pod: b, scope }));
  for (const pod of pods.slice(1)) refusals.add(plugin, pod, "overTopN");
  return pods.slice(0, 1);
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

function askByThreshold(answer: TopAnswer, met: MetThreshold, policy: EvictionPolicy): Ask {
  const { seconds, problem } = checkGrace(answer.gracePeriodSeconds, policy.grace);
  const { plugin, scope, metType, thresholdValue, observedValue, operator } = met;
  const side = operator === "lessThan" ? "below" : "above";
  return {
    plugin,
    source: "threshold",
    kind: metType === "hard" ? "forced" : "soft",
    scope,
    reason: `${scope || "its value"} is ${observedValue ?? "unknown"}, ${side} the threshold of ${thresholdValue ?? "unknown"}`,
    threshold: { thresholdValue, observedValue, operator },
    gracePeriodSeconds: seconds,
    graceProblem: problem,
  };
}

/** Finds the candidate that a plugin means, or refuses. */
class AnswerCheck {
  readonly #candidates: ReadonlyMap<string, EvictionPod>;
  readonly #exclusions: ReadonlyMap<string, Selection["exclusions"][number]>;
  readonly #refusals: RefusalLog;

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
    // A plugin may send nothing but the UID; what it sends has to be right.
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

// A plugin that names a pod again and again has one wish of each kind; of several grace periods the longest counts,
// and the pod's own before all.
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

// Forced before soft; then in an order that only depends on what the wishes say.
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
