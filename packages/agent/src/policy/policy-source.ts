import {
  type ConditionAnswer,
  type EvictPodsAnswer,
  referenceTo,
  type ThresholdAnswer,
  type TopAnswer,
  type TopQuestion,
} from "@nodekeeper/api/decide";
import { PolicyCannotJudge } from "@nodekeeper/api/errors";
import { type Clock, checkPluginName, type Logger, type NodekeeperError } from "@nodekeeper/core/lib";
import { type EvictionSource, noPods, type ObservedPod } from "../eviction/index.ts";
import type { HostSample } from "../host/index.ts";
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
  /** Only called if the policy reads usage of pods. */
  podUsage: PodUsageReader;
  clock: Clock;
  /** Returns the CPU time of this process in milliseconds, which bounds the duration of a ranking. */
  cpuMs: () => number;
  log: Logger;
  metrics: PolicyMetrics;
}

const POD_CPU = "pod.usage.cpu";
// Maximum number of pods to name in one log line.
const MOST_NAMED = 5;

/**
 * An operator's policy as an eviction plugin, with its own threshold, grace period and condition. No pod is
 * evicted because of data that cannot be read.
 */
export class PolicySource implements EvictionSource {
  readonly name: string;
  /** Undefined if the policy reads fields that are not sampled, such as filesystems. */
  readonly crossed?: (sample: HostSample) => string[];
  readonly #options: PolicySourceOptions;
  readonly #readsCpu: boolean;
  #wasMet = false;
  #isClosed = false;
  // Problems of pods are logged when they start and change, not in each round.
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

  /** A successor has the same series. */
  close(hasSuccessor: boolean): void {
    this.#isClosed = true;
    if (hasSuccessor) return;
    const { policy, metrics } = this.#options;
    metrics.met.remove({ policy: policy.name });
    for (const problem of policyProblems) metrics.problems.remove({ policy: policy.name, problem });
  }

  async getEvictPods(): Promise<EvictPodsAnswer> {
    return noPods;
  }

  /** Throws `invalid` if any field of the node that the policy reads is unknown or cannot be evaluated. */
  async thresholdMet(_pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    const { policy, readings, podUsage, clock, metrics } = this.#options;
    const [snapshot] = await Promise.all([
      readings.read(nodeReadsOf(policy), signal),
      // CPU usage is measured between two reads. It is read in each round, so that it is known when pods must
      // be ranked.
      this.#readsCpu ? podUsage([], [POD_CPU], signal) : undefined,
    ]);
    const verdict = judge(policy, snapshot, clock.monotonic(), this.#wasMet);
    // The policy may have been removed while a read was in progress.
    if (!this.#isClosed) metrics.met.set({ policy: policy.name }, verdict.state === "met" ? 1 : 0);
    // While the node is unknown, earlier pressure may persist, so it is kept until the node can be read
    // again.
    if (verdict.state === "unknown") {
      this.#countProblem("node");
      throw new PolicyCannotJudge({ problem: verdict.problems.join("; ") });
    }
    this.#wasMet = verdict.state === "met";
    return answerOf(policy, verdict);
  }

  /** Throws `invalid` if no pod can be selected because pods cannot be evaluated. */
  async getTopEvictionPods(
    pods: readonly ObservedPod[],
    { topN }: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer> {
    const { policy, podUsage, clock, cpuMs } = this.#options;
    const reads = podReadsOf(policy).filter((path) => path.startsWith("pod.usage."));
    const usages = reads.length > 0 ? await podUsage(pods, reads, signal) : { missing: "is not read" };
    const { ranked, excluded } = await rankPods(policy, pods, { usages, clock, cpuMs, signal });
    const unknown = excluded.filter(({ kind }) => kind === "unknown");
    this.#logLeftOut(unknown, "missing" in usages ? usages.missing : undefined);
    const [first] = unknown;
    if (ranked.length === 0 && first !== undefined) throw noneJudged(first, unknown.length, pods.length);
    const { terminationGracePeriodMs } = policy;
    return {
      pods: leading(ranked, topN).map(({ pod: { pod } }) => referenceTo(pod)),
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
      { errorId: PolicyCannotJudge.id, policy: policy.name, count: leftOut.length, pods, usageProblem },
      "eviction policy leaves out pods that it can't judge",
    );
  }

  #countProblem(problem: PolicyProblem): void {
    const { policy, metrics } = this.#options;
    if (!this.#isClosed) metrics.problems.inc({ policy: policy.name, problem });
  }
}

// Among all pods that a soft plugin selects, eviction takes the lowest-ranked one by its own order. To apply
// the policy's ranking, only the pods that it ranks first are selected.
function leading(ranked: readonly RankedPod[], topN: number): readonly RankedPod[] {
  if (topN > 0) return ranked.slice(0, topN);
  return ranked.filter(({ values }) => values.every((value, index) => value === ranked[0]!.values[index]));
}

function noneJudged({ pod: { pod }, why }: ExcludedPod, unknown: number, all: number): NodekeeperError {
  const message = `no pod can be selected: ${unknown} of ${all} can't be judged; ${pod.namespace}/${pod.name}: ${why}`;
  return new PolicyCannotJudge({ problem: message });
}

/** Returns the plugin name of a policy. Throws `invalid` if it is not a valid plugin name. */
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
