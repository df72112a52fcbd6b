import {
  type ConditionAnswer,
  type DecideInput,
  type Decision,
  decide,
  type EvictionPod,
  type EvictionPolicy,
  type EvictionProgress,
  type EvictPodAnswer,
  emptyEvictionState,
  type PluginAnswers,
  type PodReference,
  prepareRound,
  releaseTimeMs,
  stateAt,
  type ThresholdAnswer,
  type TopAnswer,
  type TopAnswers,
  withProgress,
} from "@nodekeeper/api/decide";
import { liveEvictionPolicy } from "../../assembly/testing/defaults.ts";

/** The node of all test pods. */
export const testNode = "node-1";

/** Returns a pod that may be evicted, with its name as UID. */
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

/** Returns the reference by which a plugin names a test pod. */
export function named(name: string): PodReference {
  return { uid: name, namespace: "default", name };
}

export function evictPod(name: string, changes: Partial<EvictPodAnswer> = {}): EvictPodAnswer {
  return { pod: named(name), reason: "memory is low", force: false, gracePeriodSeconds: null, ...changes };
}

export function nodeCondition(name: string, changes: Partial<ConditionAnswer> = {}): ConditionAnswer {
  return { target: "node", name, effects: ["NoSchedule"], met: true, ...changes };
}

/** The answers of a test plugin; empty if not set. A string instead of an answer is a failure. */
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

/** Returns the answers of test plugins, given by name. */
export function answersOf(plugins: Record<string, TestPlugin>): PluginAnswers[] {
  return Object.entries(plugins).map(([plugin, { pods = [], podsCondition = null, threshold = {} }]) => ({
    plugin,
    evictPods: typeof pods === "string" ? { failure: pods } : { answer: { pods, condition: podsCondition } },
    threshold: typeof threshold === "string" ? { failure: threshold } : { answer: testThreshold(threshold) },
  }));
}

/** Returns the answers of test plugins to GetTopEvictionPods. Plugins without one are omitted. */
export function topsOf(plugins: Record<string, TestPlugin>): TopAnswers[] {
  return Object.entries(plugins).flatMap(([plugin, { top }]): TopAnswers[] => {
    if (top === undefined) return [];
    if (typeof top === "string") return [{ plugin, top: { failure: top } }];
    if ("failure" in top) return [{ plugin, top }];
    const answer = Array.isArray(top) ? { pods: top.map(named) } : top;
    return [{ plugin, top: { answer: { pods: [], gracePeriodSeconds: null, ...answer } } }];
  });
}

/**
 * Returns the default policy without dry run, cooldown, limits and minimum grace period, which most tests do not need.
 */
export function testPolicy(changes: Partial<EvictionPolicy> = {}): EvictionPolicy {
  const { grace, ...policy } = structuredClone(liveEvictionPolicy);
  const limits = { windowMs: 60 * 60_000, perNode: null, perNamespace: null, perOwner: null };
  return { ...policy, cooldownMs: 0, limits, grace: { ...grace, shortestSeconds: 0 }, ...changes };
}

/** Plays consecutive rounds. Each starts with the state of the previous one. */
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

  /** Plays one round. Answers to GetTopEvictionPods count only for plugins that `prepareRound` has questions for. */
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

  /** Advances the time, seconds. */
  pass(seconds: number): void {
    this.now += seconds * 1000;
  }

  /** Records that requests of evictions are sent now. */
  send(...names: string[]): void {
    const at = this.now;
    this.#advance(names.map((uid) => ({ uid, stage: "sending", at, deadline: null })));
  }

  /** Records that evictions were sent and accepted now, each with its pod's own grace period. */
  accept(...names: string[]): void {
    const at = this.now;
    this.send(...names);
    this.#advance(
      names.map((uid) => {
        const pod = this.pods.find((one) => one.uid === uid)!;
        const deadline = at + releaseTimeMs(pod.gracePeriodSeconds, this.policy);
        return { uid, stage: "accepted", at, deadline };
      }),
    );
  }

  #advance(progress: EvictionProgress[]): void {
    this.state = withProgress(this.state, progress);
  }

  /** Steps the wall clock, seconds, without time passing. */
  stepClock(seconds: number): void {
    this.now += seconds * 1000;
    this.state = stateAt(this.state, this.now, 0);
  }

  /** Removes pods from the node. */
  remove(...names: string[]): void {
    this.pods = this.pods.filter((pod) => !names.includes(pod.name));
  }

  change(name: string, changes: Partial<EvictionPod>): void {
    this.pods = this.pods.map((pod) => (pod.name === name ? { ...pod, ...changes } : pod));
  }
}

/** Returns the names in the order of the victims. */
export function namesOf(pods: readonly PodReference[]): string[] {
  return pods.map((pod) => pod.name);
}
