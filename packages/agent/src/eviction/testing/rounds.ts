import { defaultEvictionPolicy } from "../../assembly/testing/defaults.ts";
import type {
  ConditionAnswer,
  EvictPodAnswer,
  PluginAnswers,
  ThresholdAnswer,
  TopAnswer,
  TopAnswers,
} from "../decide/answers.ts";
import { decide } from "../decide/decide.ts";
import type { Decision } from "../decide/decision.ts";
import type { EvictionPod, PodReference } from "../decide/pods.ts";
import type { EvictionPolicy } from "../decide/policy.ts";
import { prepareRound } from "../decide/prepare.ts";
import { releaseTimeMs } from "../decide/release.ts";
import type { DecideInput } from "../decide/round.ts";
import { type EvictionProgress, emptyEvictionState, stateAt, withProgress } from "../decide/state.ts";

/** The node of all pods here. */
export const testNode = "node-1";

/** A pod that may be evicted; its UID is its name. */
export function testPod(name: string, changes: Partial<EvictionPod> = {}): EvictionPod {
  return {
    uid: name,
    namespace: "default",
    name,
    nodeName: testNode,
    phase: "Running",
    labels: {},
    annotationKeys: [],
    owner: null,
    qosLevel: "shared_cores",
    qosClass: "BestEffort",
    priority: 0,
    priorityClassName: "",
    deletionTimestamp: null,
    startTime: 0,
    gracePeriodSeconds: 30,
    isStatic: false,
    isMirror: false,
    softEvictNotify: false,
    ...changes,
  };
}

/** As a plugin names a test pod. */
export function named(name: string): PodReference {
  return { uid: name, namespace: "default", name };
}

export function evictPod(name: string, changes: Partial<EvictPodAnswer> = {}): EvictPodAnswer {
  return { pod: named(name), reason: "memory is low", force: false, gracePeriodSeconds: null, ...changes };
}

export function nodeCondition(name: string, changes: Partial<ConditionAnswer> = {}): ConditionAnswer {
  return { target: "node", name, effects: ["NoSchedule"], met: true, ...changes };
}

/** The answers of a test plugin; empty if not given. A string instead of an answer is a failure. */
export interface TestPlugin {
  pods?: EvictPodAnswer[] | string;
  podsCondition?: ConditionAnswer;
  threshold?: Partial<ThresholdAnswer> | string;
  top?: string[] | Partial<TopAnswer> | string | Extract<TopAnswers["top"], { failure: string }>;
}

export function testThreshold(changes: Partial<ThresholdAnswer> = {}): ThresholdAnswer {
  return {
    metType: "none",
    scope: "memory",
    thresholdValue: 0.8,
    observedValue: 0.9,
    operator: "greaterThan",
    gracePeriodSeconds: 0,
    condition: null,
    candidateUids: [],
    ...changes,
  };
}

/** Answers of test plugins by their names. */
export function answersOf(plugins: Record<string, TestPlugin>): PluginAnswers[] {
  return Object.entries(plugins).map(([plugin, { pods = [], podsCondition = null, threshold = {} }]) => ({
    plugin,
    evictPods: typeof pods === "string" ? { failure: pods } : { answer: { pods, condition: podsCondition } },
    threshold: typeof threshold === "string" ? { failure: threshold } : { answer: testThreshold(threshold) },
  }));
}

/** Answers of test plugins to GetTopEvictionPods; those without one are left out. */
export function topsOf(plugins: Record<string, TestPlugin>): TopAnswers[] {
  return Object.entries(plugins).flatMap(([plugin, { top }]): TopAnswers[] => {
    if (top === undefined) return [];
    if (typeof top === "string") return [{ plugin, top: { failure: top } }];
    if ("failure" in top) return [{ plugin, top }];
    const answer = Array.isArray(top) ? { pods: top.map(named) } : top;
    return [{ plugin, top: { answer: { pods: [], gracePeriodSeconds: null, ...answer } } }];
  });
}

/** The default policy without cooldown, limits and shortest grace period, which most tests are not about. */
export function testPolicy(changes: Partial<EvictionPolicy> = {}): EvictionPolicy {
  const { grace, ...policy } = structuredClone(defaultEvictionPolicy);
  const limits = { windowMs: 60 * 60_000, perNode: null, perNamespace: null, perOwner: null };
  return { ...policy, cooldownMs: 0, limits, grace: { ...grace, shortestSeconds: 0 }, ...changes };
}

/** Plays rounds one after another, each with the state the one before left. */
export class TestRounds {
  pods: EvictionPod[];
  policy: EvictionPolicy;
  state = emptyEvictionState();
  now = 1_000_000;
  outcomes: DecideInput["outcomes"] = [];

  constructor(pods: EvictionPod[], policy: Partial<EvictionPolicy> = {}) {
    this.pods = pods;
    this.policy = testPolicy(policy);
  }

  /** Plays one round; GetTopEvictionPods counts only of plugins that `prepareRound` has questions for. */
  play(plugins: Record<string, TestPlugin>): Decision {
    const input = this.input(plugins);
    const decision = decide(input);
    this.state = decision.state;
    this.outcomes = [];
    return decision;
  }

  input(plugins: Record<string, TestPlugin>): DecideInput {
    const round = {
      now: this.now,
      nodeName: testNode,
      pods: this.pods,
      plugins: answersOf(plugins),
      outcomes: this.outcomes,
      policy: this.policy,
      state: this.state,
    };
    const asked = new Set(prepareRound(round).questions.map((question) => question.plugin));
    return { ...round, tops: topsOf(plugins).filter(({ plugin }) => asked.has(plugin)) };
  }

  /** Lets time pass, seconds. */
  pass(seconds: number): void {
    this.now += seconds * 1000;
  }

  /** Notes that evictions were sent and accepted now, each with its own grace period. */
  accept(...names: string[]): void {
    const at = this.now;
    const progress = names.flatMap((uid): EvictionProgress[] => {
      const pod = this.pods.find((one) => one.uid === uid)!;
      const deadline = at + releaseTimeMs(pod.gracePeriodSeconds, this.policy);
      return [
        { uid, stage: "sending", at, deadline: null },
        { uid, stage: "accepted", at, deadline },
      ];
    });
    this.state = withProgress(this.state, progress);
  }

  /** Steps the wall clock, seconds: no time passes. */
  stepClock(seconds: number): void {
    this.now += seconds * 1000;
    this.state = stateAt(this.state, this.now, 0);
  }

  /** Takes pods off the node. */
  remove(...names: string[]): void {
    this.pods = this.pods.filter((pod) => !names.includes(pod.name));
  }

  /** Changes a pod. */
  change(name: string, changes: Partial<EvictionPod>): void {
    this.pods = this.pods.map((pod) => (pod.name === name ? { ...pod, ...changes } : pod));
  }
}

/** Names in the order of the victims. */
export function namesOf(pods: readonly PodReference[]): string[] {
  return pods.map((pod) => pod.name);
}
