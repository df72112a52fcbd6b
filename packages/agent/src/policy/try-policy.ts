import { messageOf, processCpuMs, systemClock } from "@nodekeeper/core/lib";
import type { PodReference } from "../eviction/index.ts";
import { judge } from "./judge.ts";
import type { Policy } from "./policy.ts";
import { rankPods } from "./rank-pods.ts";
import type { Scene } from "./scene.ts";

/** What a policy would decide in a scene; plain JSON. */
export interface PolicyTrial {
  policy: string;
  type: Policy["type"];
  state: "met" | "notMet" | "unknown";
  /** Met only because the minimum reclaim is not reached. */
  isHeld: boolean;
  observed: number | null;
  operator: Policy["operator"];
  threshold: number | null;
  gracePeriodMs: number;
  /** Why it can't judge the node, or could not rank its pods. */
  problems: string[];
  /** The expressions that values belong to. */
  rank: string[];
  /** Who would go if there is pressure, first is first. */
  ranking: (PodReference & { values: number[] })[];
  excluded: (PodReference & { kind: "filtered" | "unknown" | "notCandidate"; why: string })[];
}

/**
 * Tries a policy: the node is judged, and pods are ranked whether there is pressure or not. Never throws but for the
 * signal. @param wasMet as though there had been pressure before
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
      wholePods: scene.wholePods,
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

function referenceTo({ uid, namespace, name }: PodReference): PodReference {
  return { uid, namespace, name };
}
