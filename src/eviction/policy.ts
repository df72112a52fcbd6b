/** What the operator has decided about eviction: plain data, so that `replay` can try another one. Times are milliseconds. */
export interface EvictionPolicy {
  /** Pods whose eviction one round may begin; no bound when negative. */
  burst: number;
  /** Names of plugins whose wishes are only recorded; "*" is all of them. */
  dryRunPlugins: string[];
  /** How long a condition stays after it was last met. */
  conditionTransitionMs: number;
  /** The first part of taint keys: "nodekeeper.dev". */
  taintPrefix: string;
  /** After a pressure's last victim is gone: how long until the same pressure may take the next. */
  cooldownMs: number;
  /** How long beyond its grace period an evicted pod may take to be gone, and counts as on its way out. */
  releaseMarginMs: number;
  /** An evicted pod counts as on its way out no longer than this, whatever its grace period, so that one that hangs holds up nobody. */
  longestReleaseMs: number;
  /** How long a pod is left alone after its eviction failed, as by a disruption budget. */
  failedEvictionPauseMs: number;
  /** Grace timers and conditions of a plugin that is no longer registered are kept for so long. */
  forgetPluginMs: number;
  limits: EvictionLimits;
  skip: SkipRules;
  grace: GraceRules;
}

/** How many evictions may begin within `windowMs`; null is no limit. */
export interface EvictionLimits {
  windowMs: number;
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
  /** A plugin's longer wish is cut to this, seconds. */
  longestSeconds: number;
  /** Whether a plugin's explicit 0 kills at once; else the pod's own grace period holds. */
  allowZero: boolean;
}

/** What holds where the operator says nothing. */
export const defaultEvictionPolicy: Readonly<EvictionPolicy> = {
  burst: 3,
  dryRunPlugins: [],
  conditionTransitionMs: 5 * 60_000,
  taintPrefix: "nodekeeper.dev",
  cooldownMs: 0,
  releaseMarginMs: 30_000,
  longestReleaseMs: 10 * 60_000,
  failedEvictionPauseMs: 60_000,
  forgetPluginMs: 5 * 60_000,
  limits: { windowMs: 60 * 60_000, perNamespace: null, perOwner: null },
  skip: { labelKeys: [], annotationKeys: [], evictDaemonSetPods: false },
  grace: { longestSeconds: 3600, allowZero: false },
};

/** Whether a plugin's wishes are only recorded. */
export function isDryRun(policy: EvictionPolicy, plugin: string): boolean {
  return policy.dryRunPlugins.includes("*") || policy.dryRunPlugins.includes(plugin);
}
