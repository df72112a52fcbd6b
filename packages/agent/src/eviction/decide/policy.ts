import type { RankKeyName } from "./rank.ts";

/** The configured eviction policy: plain JSON, so that `replay` can apply another one. Times are milliseconds. */
export interface EvictionPolicy {
  /** Upper bound of evictions started per round; unlimited if negative. */
  burst: number;
  /** The keys by which pods are ranked, the most significant first: see `rankOrder`. */
  ranking: RankKeyName[];
  /** The plugins whose requests are only recorded: "name", "*" for all, "-name" for an exception. See `matchesName`. */
  dryRunPlugins: string[];
  /**
   * The plugins for which the ranking may select a pod while they name only pods that can't be evicted: "name", "*" for
   * all, "-name" for an exception. See `matchesName`.
   */
  fallbackPlugins: string[];
  /** How long a condition stays after it was last reported as met. */
  conditionTransitionPeriodMs: number;
  /** The prefix of taint keys: "nodekeeper.dev". */
  taintPrefix: string;
  /** Taint effects that conditions may have: NoSchedule, PreferNoSchedule, NoExecute. Others are refused. */
  taintEffects: string[];
  /** How long no further pod is selected for a scope after its last victim was deleted. */
  cooldownMs: number;
  /** How long beyond its grace period the deletion of an evicted pod may take. */
  releaseMarginMs: number;
  /** How long a terminating pod blocks further evictions for the same threshold, whatever its grace period. */
  longestReleaseMs: number;
  /** How long the eviction of a pod is not retried after it failed, as when a PodDisruptionBudget refused it. */
  failedEvictionPauseMs: number;
  /** How long grace timers of a plugin that is no longer registered are kept. */
  forgetPluginAfterMs: number;
  limits: EvictionLimits;
  skip: SkipRules;
  grace: GraceRules;
}

/** Limits of evictions that start within `windowMs`; null for no limit. */
export interface EvictionLimits {
  windowMs: number;
  perNode: number | null;
  perNamespace: number | null;
  perOwner: number | null;
}

/** Pods that are never candidates, besides critical, static, mirror and terminating ones. */
export interface SkipRules {
  /** Label keys, with any value. */
  labelKeys: string[];
  /** Annotation keys, with any value. */
  annotationKeys: string[];
  /** Whether pods of DaemonSets may be evicted. Their controller recreates them on the same node. */
  evictDaemonSetPods: boolean;
}

/** Bounds of grace periods requested by plugins. */
export interface GraceRules {
  /** Lower bound, seconds; at most `longestSeconds`. */
  shortestSeconds: number;
  /** Upper bound, seconds. */
  longestSeconds: number;
  /** Whether 0 is allowed: the pod is killed at once. Otherwise 0 falls back to the pod's own grace period. */
  allowZero: boolean;
}

/**
 * Whether a list of names applies to `name`: "name" includes and "-name" excludes it; the first of these that is in the
 * list takes precedence, then "*", which includes every name. Pure. Source: katalyst-core `pkg/util/general`,
 * IsNameEnabled.
 */
export function matchesName(list: readonly string[], name: string): boolean {
  const own = list.find((item) => item === name || item === `-${name}`);
  return own === undefined ? list.includes("*") : own === name;
}

type DryRunRule = { readonly dryRunPlugins: readonly string[] };

/** Whether a plugin's requests are only recorded. */
export function isDryRun({ dryRunPlugins }: DryRunRule, plugin: string): boolean {
  return matchesName(dryRunPlugins, plugin);
}

/** Whether every plugin is in dry run, known or not: "*" without an exception. Then nothing about eviction is written. */
export function isFullDryRun({ dryRunPlugins }: DryRunRule): boolean {
  const exceptions = dryRunPlugins.filter((item) => item.startsWith("-"));
  return dryRunPlugins.includes("*") && exceptions.every((item) => matchesName(dryRunPlugins, item.slice(1)));
}
