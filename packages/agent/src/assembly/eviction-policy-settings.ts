import type { AgentConfiguration } from "../config/index.ts";
import type { EvictionPolicy, RankKeyName } from "../eviction/index.ts";

/** The eviction policy of the configuration: what `replay` can replace by another. */
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
