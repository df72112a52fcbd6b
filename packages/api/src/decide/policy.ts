import type { AgentConfiguration } from "../settings/index.ts";
import type { RankKeyName } from "./rank.ts";

/** The configured eviction policy, as plain JSON so that `replay` can apply another one. Times are in milliseconds. */
export interface EvictionPolicy {
  /** Upper bound of evictions started per round; unlimited if negative. */
  burst: number;
  /** The keys by which pods are ranked, most significant first: see `rankOrder`. */
  ranking: RankKeyName[];
  /** The plugins whose requests are only recorded: "name", "*" for all, "-name" for an exception. See `matchesName`. */
  dryRunPlugins: string[];
  /**
   * The plugins for which the ranking may select a pod if they name only pods that can't be evicted: "name", "*" for
   * all, "-name" for an exception. See `matchesName`.
   */
  fallbackPlugins: string[];
  /** How long a condition stays after it was last reported as met. */
  conditionTransitionPeriodMs: number;
  /** The prefix of taint keys, for example "nodekeeper.dev". */
  taintPrefix: string;
  /** The taint effects that conditions may have: NoSchedule, PreferNoSchedule, NoExecute. Others are refused. */
  taintEffects: string[];
  /** How long no other pod is selected for a scope after its last victim was deleted. */
  cooldownMs: number;
  /** How long the deletion of an evicted pod may take beyond its grace period. */
  releaseMarginMs: number;
  /**
   * Upper bound of the time for which a terminating pod blocks further evictions for the same threshold, regardless of
   * its grace period.
   */
  longestReleaseMs: number;
  /** How long the eviction of a pod is not retried after a failure, for example a refusal by a PodDisruptionBudget. */
  failedEvictionPauseMs: number;
  /** How long the grace timers of a plugin are kept after it disconnected. */
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

/** Pods that are never candidates, in addition to critical, static, mirror and terminating ones. */
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
  /** Whether 0 is allowed, which kills the pod immediately. If not, 0 falls back to the pod's own grace period. */
  allowZero: boolean;
}

/**
 * Returns whether a list of names applies to `name`. "name" includes and "-name" excludes it; if the list contains
 * both, the first one applies; if neither, "*" includes every name. Pure. Source: katalyst-core `pkg/util/general`,
 * IsNameEnabled.
 */
export function matchesName(list: readonly string[], name: string): boolean {
  const own = list.find((item) => item === name || item === `-${name}`);
  return own === undefined ? list.includes("*") : own === name;
}

type DryRunRule = { readonly dryRunPlugins: readonly string[] };

/** Returns whether a plugin's requests are only recorded. */
export function isDryRun({ dryRunPlugins }: DryRunRule, plugin: string): boolean {
  return matchesName(dryRunPlugins, plugin);
}

/**
 * Returns whether every plugin, even an unknown one, is in dry run: "*" without an exception. In this case eviction
 * writes nothing.
 */
export function isFullDryRun({ dryRunPlugins }: DryRunRule): boolean {
  const exceptions = dryRunPlugins.filter((item) => item.startsWith("-"));
  return dryRunPlugins.includes("*") && exceptions.every((item) => matchesName(dryRunPlugins, item.slice(1)));
}

/** Returns the eviction policy of the configuration, which `replay` can replace with another one. */
export function evictionPolicyOf({ eviction }: Pick<AgentConfiguration, "eviction">): EvictionPolicy {
  const { limits, skip, grace } = eviction;
  return {
    burst: eviction.burst,
    ranking: eviction.ranking as RankKeyName[],
    dryRunPlugins: eviction.dryRunPlugins,
    fallbackPlugins: eviction.fallbackPlugins,
    conditionTransitionPeriodMs: eviction.conditionTransitionPeriod,
    taintPrefix: eviction.taintPrefix,
    taintEffects: eviction.taintEffects,
    cooldownMs: eviction.cooldown,
    releaseMarginMs: eviction.releaseMargin,
    longestReleaseMs: eviction.longestRelease,
    failedEvictionPauseMs: eviction.failedEvictionPause,
    forgetPluginAfterMs: eviction.forgetPluginAfter,
    limits: {
      windowMs: limits.window,
      perNode: limits.perNode || null,
      perNamespace: limits.perNamespace || null,
      perOwner: limits.perOwner || null,
    },
    skip: {
      labelKeys: skip.labels,
      annotationKeys: skip.annotations,
      evictDaemonSetPods: !skip.daemonSets,
    },
    grace: {
      shortestSeconds: Math.ceil(grace.shortest / 1000),
      longestSeconds: Math.floor(grace.longest / 1000),
      allowZero: grace.allowZero,
    },
  };
}
