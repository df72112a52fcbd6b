import { type PodReference, referenceTo } from "@nodekeeper/api/decide";
import { messageOf, processCpuMs, systemClock } from "@nodekeeper/core/lib";
import { judge } from "./judge.ts";
import type { Policy } from "./policy.ts";
import { rankPods } from "./rank-pods.ts";
import type { Scene } from "./scene.ts";

/** The decision of a policy in a scene, as plain JSON. */
export interface PolicyTrial {
  policy: string;
  type: Policy["type"];
  state: "met" | "notMet" | "unknown";
  /** Met only because the minimum reclaim has not been reached yet. */
  isHeld: boolean;
  observed: number | null;
  operator: Policy["operator"];
  threshold: number | null;
  gracePeriodMs: number;
  /** Why the node cannot be evaluated or its pods cannot be ranked. */
  problems: string[];
  /** The expressions that result in `values`. */
  rank: string[];
  /** In eviction order. */
  ranking: (PodReference & { values: number[] })[];
  excluded: (PodReference & { kind: "filtered" | "unknown" | "notCandidate"; why: string })[];
}

/**
 * Tries a policy: evaluates the node and ranks pods, whether or not there is pressure. Throws only the
 * signal's reason.
 * @param wasMet whether to assume that there was pressure before
 */
export async function tryPolicy(
  policy: Policy,
  scene: Scene,
  wasMet: boolean,
  signal: AbortSignal,
): Promise<PolicyTrial> {
  const { state, isHeld, observed, threshold, problems } = judge(policy, scene.node, scene.at, wasMet);
  const trial: PolicyTrial = {
    policy: policy.name,
    type: policy.type,
    state,
    isHeld,
    observed,
    operator: policy.operator,
    threshold,
    gracePeriodMs: policy.gracePeriodMs,
    problems: [...problems],
    rank: policy.rank.map(({ text }) => text),
    ranking: [],
    excluded: [],
  };
  try {
    const { ranked, excluded } = await rankPods(policy, scene.pods, {
      usages: { value: scene.usages, at: systemClock.monotonic() },
      clock: { ...systemClock, now: () => scene.at },
      cpuMs: processCpuMs,
      signal,
    });
    trial.ranking = ranked.map(({ pod, values }) => ({ ...referenceTo(pod.pod), values }));
    trial.excluded = [
      ...excluded.map(({ pod, kind, why }) => ({ ...referenceTo(pod.pod), kind, why })),
      ...scene.others.map(({ pod, why }) => ({ ...referenceTo(pod), kind: "notCandidate" as const, why })),
    ];
  } catch (error) {
    signal.throwIfAborted();
    trial.problems.push(messageOf(error));
  }
  return trial;
}
