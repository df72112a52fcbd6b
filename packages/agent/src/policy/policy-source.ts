import { type Clock, checkPluginName, type Logger, NodekeeperError } from "@nodekeeper/core/lib";
import {
  type ConditionAnswer,
  type EvictionSource,
  type EvictPodsAnswer,
  noPods,
  type ObservedPod,
  type ThresholdAnswer,
  type TopAnswer,
  type TopQuestion,
} from "../eviction/index.ts";
import type { HostSample } from "../host/index.ts";
import type { WholePods } from "../pod-usage/index.ts";
import { sampledNode, sampledParts } from "./host-node-readings.ts";
import { judge, type Verdict } from "./judge.ts";
import type { NodeReadings } from "./node-snapshot.ts";
import type { PodUsageReader } from "./pod-variable.ts";
import { nodeReadsOf, type Policy, podReadsOf } from "./policy.ts";
import { type PolicyMetrics, type PolicyProblem, policyProblems } from "./policy-metrics.ts";
import { type ExcludedPod, type RankedPod, rankPods } from "./rank-pods.ts";

export interface PolicySourceOptions {
  policy: Policy;
  readings: NodeReadings;
  /** Asked where the policy reads what pods use. */
  podUsage: PodUsageReader;
  /** Shared by all policies, so that a pod is decoded once. */
  wholePods: WholePods;
  clock: Clock;
  /** CPU time of this process, milliseconds: what a ranking may take is bounded by it. */
  cpuMs: () => number;
  log: Logger;
  metrics: PolicyMetrics;
}

const POD_CPU = "pod.usage.cpu";
// Names of pods in one line of the log.
const MOST_NAMED = 5;

/**
 * One policy of an operator as an eviction plugin of its own, with its own threshold, grace period and condition.
 * What can't be read evicts no pod.
 */
export class PolicySource implements EvictionSource {
  readonly name: string;
  /** Absent where the policy reads what is not sampled, such as file systems. */
  readonly crossed?: (sample: HostSample) => string[];
  readonly #options: PolicySourceOptions;
  readonly #readsCpu: boolean;
  #wasMet = false;
  #isClosed = false;
  // What is wrong with pods is logged when it begins and changes, not each round.
  #leftOut = "";

  constructor(options: PolicySourceOptions) {
    this.name = policyPluginName(options.policy.name);
    this.#options = options;
    const { policy } = options;
    this.#readsCpu = podReadsOf(policy).includes(POD_CPU);
    const reads = nodeReadsOf(policy);
    const isSampled = reads.every((path) => sampledParts.includes(path.split(".")[1]!));
    if (!isSampled) return;
    this.crossed = (sample) => {
      return judge(policy, sampledNode(sample, reads), sample.at, false).state === "met"
        ? [policy.scope]
        : [];
    };
  }

  close(): void {
    this.#isClosed = true;
    const { policy, metrics } = this.#options;
    metrics.met.remove({ policy: policy.name });
    for (const problem of policyProblems) metrics.problems.remove({ policy: policy.name, problem });
  }

  async getEvictPods(): Promise<EvictPodsAnswer> {
    return noPods;
  }

  /** Throws `invalid` where anything that the policy reads of the node is not known, or can't be evaluated. */
  async thresholdMet(_pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    const { policy, readings, podUsage, clock, metrics } = this.#options;
    const [snapshot] = await Promise.all([
      readings.read(nodeReadsOf(policy), signal),
      // CPUs are those between two looks: each round looks, so that they are known when pods have to be ranked.
      this.#readsCpu ? podUsage([], [POD_CPU], signal) : undefined,
    ]);
    const verdict = judge(policy, snapshot, clock.monotonic(), this.#wasMet);
    // A reading may come back when the policy is removed already.
    if (!this.#isClosed) metrics.met.set({ policy: policy.name }, verdict.state === "met" ? 1 : 0);
    // While nothing is known, what was over may still be: it holds when it can be read again.
    if (verdict.state === "unknown") {
      this.#countProblem("node");
      throw new NodekeeperError("invalid", verdict.problems.join("; "), { id: "NK1611" });
    }
    this.#wasMet = verdict.state === "met";
    return answerOf(policy, verdict);
  }

  /** Throws `invalid` where no pod can be selected because pods can't be judged. */
  async getTopEvictionPods(
    pods: readonly ObservedPod[],
    { topN }: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer> {
    const { policy, podUsage, wholePods, clock, cpuMs } = this.#options;
    const reads = podReadsOf(policy).filter((path) => path.startsWith("pod.usage."));
    const usages = reads.length > 0 ? await podUsage(pods, reads, signal) : { missing: "is not read" };
    const { ranked, excluded } = await rankPods(policy, pods, {
      usages,
      wholePods,
      clock,
      cpuMs,
      signal,
    });
    const unknown = excluded.filter(({ kind }) => kind === "unknown");
    this.#logLeftOut(unknown, "missing" in usages ? usages.missing : undefined);
    const [first] = unknown;
    if (ranked.length === 0 && first !== undefined) throw noneJudged(first, unknown.length, pods.length);
    const { terminationGracePeriodMs } = policy;
    return {
      pods: leading(ranked, topN).map(({ pod: { pod } }) => {
        return { uid: pod.uid, namespace: pod.namespace, name: pod.name };
      }),
      gracePeriodSeconds:
        terminationGracePeriodMs === null ? null : Math.ceil(terminationGracePeriodMs / 1000),
    };
  }

  #logLeftOut(leftOut: readonly ExcludedPod[], usageProblem: string | undefined): void {
    const { policy, log } = this.#options;
    if (leftOut.length > 0) this.#countProblem("pods");
    const kind = leftOut.map(({ pod, why }) => `${pod.pod.uid} ${why}`).join();
    if (kind === this.#leftOut) return;
    this.#leftOut = kind;
    if (leftOut.length === 0) return;
    const pods = leftOut.slice(0, MOST_NAMED).map(({ pod: { pod }, why }) => {
      return { namespace: pod.namespace, name: pod.name, why };
    });
    log.warn(
      { errorId: "NK1611", policy: policy.name, count: leftOut.length, pods, usageProblem },
      "eviction policy leaves out pods that it can't judge",
    );
  }

  #countProblem(problem: PolicyProblem): void {
    const { policy, metrics } = this.#options;
    if (!this.#isClosed) metrics.problems.inc({ policy: policy.name, problem });
  }
}

// Of all that a soft plugin names, eviction takes the least important by its own order: so that the policy's ranking
// counts, none is named but those it puts first.
function leading(ranked: readonly RankedPod[], topN: number): readonly RankedPod[] {
  if (topN > 0) return ranked.slice(0, topN);
  return ranked.filter(({ values }) => values.every((value, index) => value === ranked[0]!.values[index]));
}

function noneJudged({ pod: { pod }, why }: ExcludedPod, unknown: number, all: number): NodekeeperError {
  const message = `no pod can be selected: ${unknown} of ${all} can't be judged; ${pod.namespace}/${pod.name}: ${why}`;
  return new NodekeeperError("invalid", message, { id: "NK1611" });
}

/** The name of a policy's plugin. Throws `invalid` for one that is no plugin's name. */
export function policyPluginName(policy: string): string {
  const name = `policy-${policy}`;
  checkPluginName(name);
  return name;
}

function answerOf(policy: Policy, { state, observed, threshold }: Verdict): ThresholdAnswer {
  const isMet = state === "met";
  return {
    metType: isMet ? policy.type : "none",
    scope: policy.scope,
    thresholdValue: threshold,
    observedValue: observed,
    operator: policy.operator,
    // The policy's filter is applied when pods are ranked.
    candidateUids: [],
    gracePeriodSeconds: policy.gracePeriodMs / 1000,
    condition: conditionOf(policy, isMet),
  };
}

function conditionOf({ condition }: Policy, met: boolean): ConditionAnswer | null {
  return condition && { ...condition, effects: [...condition.effects], met };
}
