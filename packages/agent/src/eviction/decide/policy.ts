/** What the operator has decided about eviction: plain data, so that `replay` can try another one. Times are milliseconds. */
export interface EvictionPolicy {
  /** Pods whose eviction one round may start; no bound when negative. */
  burst: number;
  /** Names of plugins whose requests are only recorded; "*" is all of them. */
  dryRunPlugins: string[];
  /** How long a condition stays after it was last met. */
  conditionTransitionMs: number;
  /** The first part of taint keys: "nodekeeper.dev". */
  taintPrefix: string;
  /** Effects that conditions may have as taints: NoSchedule, PreferNoSchedule, NoExecute. Others are refused. */
  taintEffects: string[];
  /** After a scope's last victim is deleted: how long until the same scope may take the next. */
  cooldownMs: number;
  /** How long beyond its grace period an evicted pod may take to be deleted. */
  releaseMarginMs: number;
  /** How long a terminating pod holds back its pressure at most, whatever its grace period. */
  longestReleaseMs: number;
  /** How long a pod is left alone after its eviction failed, as by a disruption budget. */
  failedEvictionPauseMs: number;
  /** Grace timers and conditions of a plugin that is no longer registered are kept for so long. */
  forgetPluginMs: number;
  limits: EvictionLimits;
  skip: SkipRules;
  grace: GraceRules;
}

/** How many evictions may start within `windowMs`; null is no limit. */
export interface EvictionLimits {
  windowMs: number;
  perNode: number | null;
  perNamespace: number | null;
  perOwner: number | null;
}

/** Which pods are never candidates besides critical, static, mirror and terminating ones. */
export interface SkipRules {
  /** Names of labels; any value. */
  labelKeys: string[];
  /** Names of annotations; any value. */
  annotationKeys: string[];
  /** Whether pods of DaemonSets may be evicted. Their controller would put them back at once. */
  evictDaemonSetPods: boolean;
}

/** What a plugin may say about a victim's grace period. */
export interface GraceRules {
  /** A shorter one is raised to this, seconds; never above `longestSeconds`. */
  shortestSeconds: number;
  /** A longer one is cut to this, seconds. */
  longestSeconds: number;
  /** Whether a plugin's explicit 0 kills at once; else the pod's own grace period holds. */
  allowZero: boolean;
}

/**
 * What holds where the operator says nothing. A threshold that never clears costs the node ten pods in ten minutes and
 * a workload two, and after each the pressure has half a minute to ease.
 */
export const defaultEvictionPolicy: Readonly<EvictionPolicy> = {
  burst: 3,
  dryRunPlugins: [],
  conditionTransitionMs: 5 * 60_000,
  taintPrefix: "nodekeeper.dev",
  taintEffects: ["NoSchedule", "PreferNoSchedule"],
  cooldownMs: 30_000,
  releaseMarginMs: 30_000,
  longestReleaseMs: 10 * 60_000,
  failedEvictionPauseMs: 60_000,
  forgetPluginMs: 5 * 60_000,
  limits: { windowMs: 10 * 60_000, perNode: 10, perNamespace: null, perOwner: 2 },
  skip: { labelKeys: [], annotationKeys: [], evictDaemonSetPods: false },
  grace: { shortestSeconds: 10, longestSeconds: 3600, allowZero: false },
};

/** Whether a plugin's requests are only recorded. */
export function isDryRun(policy: EvictionPolicy, plugin: string): boolean {
  return policy.dryRunPlugins.includes("*") || policy.dryRunPlugins.includes(plugin);
}
