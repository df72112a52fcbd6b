import {
  type Decision,
  decide,
  type EvictionPod,
  type EvictionPolicy,
  emptyEvictionState,
  evictionPolicyOf,
  type IneligibleReason,
  isDryRun,
  type PluginAnswers,
  type PodReference,
  type PreparedRound,
  prepareRound,
  type RoundInput,
  rankOrder,
  type TopAnswers,
} from "@nodekeeper/api/decide";
import { defaultConfiguration } from "@nodekeeper/api/settings";
import { podMessageOf } from "../../../packages/agent/src/eviction/observe/pod-message.ts";
import { qosLevelReader } from "../../../packages/agent/src/eviction/observe/qos-level.ts";
import { readPod } from "../../../packages/agent/src/eviction/observe/read-pod.ts";
import type { Difference } from "./differences.ts";
import { type GeneratedPlugin, type GeneratedRound, type GeneratedRun, NODE } from "./rounds.ts";

/** What a round of katalyst's manager did: test/e2e/goplugins/katalyst-rounds/main.go. */
export interface KatalystResult {
  started: { uid: string; grace: number }[];
  waiting: string[];
  conditions: string[];
  order: string[];
  /** The panic that ended the manager in this round, or empty: then there is nothing else. */
  panic: string;
}

// A round as it was decided here.
interface OwnResult {
  pods: EvictionPod[];
  policy: EvictionPolicy;
  decision: Decision;
  /** Why candidates were not offered to plugins, by UID. */
  notOffered: ReadonlyMap<string, IneligibleReason>;
}

/** A difference of one pod, with its name. */
export interface FoundDifference extends Difference {
  uid: string;
}

const readLevel = qosLevelReader();

/** A round of both. */
export interface ComparedRound {
  order: { there: string[]; here: string[] };
  /** Names of the conditions in force. */
  conditions: { there: string[]; here: string[] };
  evicted: { there: number; here: number; byBoth: number };
  differences: FoundDifference[];
}

/** Compares the rounds of a run up to the one in which katalyst's manager panicked, if it did. */
export function compareRun(run: GeneratedRun, results: readonly KatalystResult[]): ComparedRound[] {
  const earlier = { there: new Set<string>(), here: new Set<string>() };
  const own = decideRun(run);
  return results.map((katalyst, place) => {
    const [round, mine] = [run.rounds[place]!, own[place]!];
    const compared = compareRound(round, mine, katalyst, earlier);
    for (const { uid } of startedBy(katalyst)) earlier.there.add(uid);
    for (const { uid } of mine.decision.victims) earlier.here.add(uid);
    return compared;
  });
}

function compareRound(
  round: GeneratedRound,
  own: OwnResult,
  katalyst: KatalystResult,
  earlier: EarlierVictims,
): ComparedRound {
  const { victims, conditions } = own.decision;
  const uids = new Set(victims.map(({ uid }) => uid));
  const order = orderOf(round, own);
  const names = conditions.map(({ name }) => name).sort();
  const started = startedBy(katalyst);
  const isWhole = katalyst.panic === "";
  return {
    order: { here: order, there: isWhole ? katalyst.order : order },
    conditions: { here: names, there: isWhole ? katalyst.conditions : names },
    evicted: {
      there: started.length,
      here: victims.length,
      byBoth: started.filter(({ uid }) => uids.has(uid)).length,
    },
    differences: differencesOf(round, own, katalyst, earlier),
  };
}

// Decides the rounds of a run with the default policy of the agent, and the run's burst, dry run and skip keys.
function decideRun(run: GeneratedRun): OwnResult[] {
  const { eviction } = defaultConfiguration();
  const skip = { ...eviction.skip, labels: run.skipLabels, annotations: run.skipAnnotations };
  const policy = evictionPolicyOf({
    eviction: { ...eviction, burst: run.burst, dryRunPlugins: run.dryRun, skip },
  });
  let state = emptyEvictionState();
  let now = 1_000_000;
  return run.rounds.map((round) => {
    const pods = round.pods.map((pod) => readPod(podMessageOf(pod), readLevel));
    const plugins = answersOf(round);
    const input: RoundInput = { now, nodeName: NODE, pods, plugins, outcomes: [], policy, state };
    const prepared = prepareRound(input);
    const decision = decide({ ...input, tops: topsOf(round, prepared) });
    state = decision.state;
    now += 5_000;
    const notOffered = new Map(prepared.eligibility.ineligible.map(({ uid, reason }) => [uid, reason]));
    return { pods, policy, decision, notOffered };
  });
}

// The order of the pods with a scope here, as `KatalystResult.order`: the last is the first to be evicted.
function orderOf({ scopes }: GeneratedRound, { pods, policy }: OwnResult): string[] {
  const ranked = pods.map((pod) => ({ pod, scope: scopes[pod.uid] ?? null }));
  return ranked
    .sort(rankOrder(policy.ranking))
    .reverse()
    .map(({ pod }) => pod.uid);
}

// The pods that were evicted in earlier rounds of a run.
interface EarlierVictims {
  there: ReadonlySet<string>;
  here: ReadonlySet<string>;
}

// All differences between the victims of one round. A pod that the other one evicted in an earlier round is none.
function differencesOf(
  round: GeneratedRound,
  own: OwnResult,
  katalyst: KatalystResult,
  earlier: EarlierVictims,
): FoundDifference[] {
  const there = new Map(startedBy(katalyst).map(({ uid, grace }) => [uid, grace]));
  const here = new Map(
    own.decision.victims.map(({ uid, gracePeriodSeconds }) => [
      uid,
      gracePeriodSeconds ?? own.pods.find((pod) => pod.uid === uid)!.gracePeriodSeconds,
    ]),
  );
  const uids = [...new Set([...there.keys(), ...here.keys()])].sort();
  return uids.flatMap((uid) => {
    const [theirs, ours] = [there.get(uid), here.get(uid)];
    const [before, beforeHere] = [earlier.there.has(uid), earlier.here.has(uid)];
    const isLater = theirs === undefined ? before : ours === undefined && beforeHere && !before;
    if (theirs === ours || isLater) return [];
    const kind = theirs === undefined ? "onlyHere" : ours === undefined ? "onlyKatalyst" : "gracePeriod";
    return [{ uid, kind, there: theirs, here: ours, ...factsOf(uid, round, own, katalyst) }];
  });
}

// The evictions that a round of katalyst's started.
function startedBy({ started, panic }: KatalystResult): KatalystResult["started"] {
  return panic === "" ? started : [];
}

type Facts = Omit<Difference, "kind" | "there" | "here">;

function factsOf(uid: string, round: GeneratedRound, own: OwnResult, katalyst: KatalystResult): Facts {
  const { decision, policy, pods, notOffered } = own;
  const { exclusions, refusals, victims, thresholds } = decision;
  const asked = Object.entries(round.plugins).filter(([name]) => !isDryRun(policy, name));
  const namers = asked.filter(([, { top }]) => top.uids.includes(uid)).map(([name]) => name);
  const isHeldNamer = ({ plugin }: { plugin: string }) => namers.includes(plugin);
  const soft = victims.find((victim) => victim.kind === "soft");
  const isVictim = victims.some((victim) => victim.uid === uid);
  const real = refusals.filter(({ plugin }) => !isDryRun(policy, plugin));
  const refusal = [...exclusions, ...real].find((one) => one.uid === uid)?.reason ?? notOffered.get(uid);
  return {
    refusal: isVictim ? undefined : refusal,
    held: thresholds.find((met) => isHeldNamer(met) && met.held)?.held?.reason,
    requests: asked.flatMap(([, plugin]) => requestsOf(uid, plugin)),
    hasUnknownLevel: pods.find((pod) => pod.uid === uid)?.qosLevel === "unknown",
    panicked: katalyst.panic !== "",
    waitsThere: katalyst.panic === "" && katalyst.waiting.includes(uid),
    followsOrder: katalyst.panic === "" && followsOrder(own, round, katalyst.order),
    softSource: soft?.asks[0]?.source,
  };
}

function requestsOf(uid: string, { evictPods, threshold, top }: GeneratedPlugin): Facts["requests"] {
  const byName = evictPods.filter((one) => one.uid === uid);
  const kind = threshold.metType === "hard" ? "forced" : "soft";
  const isTop = threshold.metType !== "none" && threshold.grace <= 0 && top.uids.includes(uid);
  return [
    ...byName.map(({ force, grace }) => ({
      kind: force ? ("forced" as const) : ("soft" as const),
      source: "evictPods" as const,
      grace,
    })),
    ...(isTop ? [{ kind, source: "threshold", grace: top.grace } as const] : []),
  ];
}

// Whether the soft victim, or the soft request that waits, is the last of all that could be, in katalyst's order. Pods of a
// soft threshold are left out: they rank by its scope, and katalyst's manager of that version does not ask for them. It holds
// too if there is none: then nothing contradicts the order.
function followsOrder({ decision }: OwnResult, round: GeneratedRound, order: readonly string[]): boolean {
  const plugins = Object.values(round.plugins);
  const isOfThreshold = (uid: string) =>
    plugins.some((plugin) => requestsOf(uid, plugin).some(({ source }) => source === "threshold"));
  const chosen = decision.ranking.find(
    ({ kind, outcome }) => kind === "soft" && (outcome === "victim" || outcome === "waiting"),
  );
  if (!chosen || isOfThreshold(chosen.uid)) return true;
  const higher = new Set(
    decision.refusals.filter(({ reason }) => reason === "notLeastImportant").map(({ uid }) => uid),
  );
  const compared = order.filter((uid) => uid === chosen.uid || (higher.has(uid) && !isOfThreshold(uid)));
  return compared.at(-1) === chosen.uid;
}

function answersOf({ pods, plugins }: GeneratedRound): PluginAnswers[] {
  return Object.entries(plugins).map(([plugin, { evictPods, threshold }]) => ({
    plugin,
    evictPods: {
      answer: {
        pods: evictPods.map(({ uid, force, grace }) => ({
          pod: referenceOf(uid, pods),
          reason: "scripted",
          force,
          gracePeriodSeconds: grace,
        })),
        condition: null,
      },
    },
    threshold: {
      answer: {
        metType: threshold.metType,
        scope: threshold.scope,
        thresholdValue: 0.8,
        observedValue: 0.9,
        operator: "greaterThan",
        gracePeriodSeconds: threshold.grace,
        condition: threshold.condition && { target: "node", ...threshold.condition, met: true },
        candidateUids: [],
      },
    },
  }));
}

// As a plugin: of the pods that it is offered those that it would name.
function topsOf({ pods, plugins }: GeneratedRound, { questions, selection }: PreparedRound): TopAnswers[] {
  return questions.map(({ plugin, candidateUids }) => {
    const offered = new Set(candidateUids ?? selection.candidates.map(({ uid }) => uid));
    const { uids, grace } = plugins[plugin]!.top;
    const named = uids.filter((uid) => offered.has(uid)).map((uid) => referenceOf(uid, pods));
    return { plugin, top: { answer: { pods: named, gracePeriodSeconds: grace } } };
  });
}

function referenceOf(uid: string, pods: GeneratedRound["pods"]): PodReference {
  const known = pods.find(({ metadata }) => metadata.uid === uid)?.metadata;
  return known
    ? { uid, namespace: known.namespace, name: known.name }
    : { uid, namespace: "default", name: uid };
}
