import type { policy, ValueOf } from "../openapi/index.ts";
import type { AgentConfiguration } from "../settings/index.ts";

/**
 * The configured eviction policy, as plain JSON so that `replay` can apply another one. For lists of plugins see
 * `matchesName`, for `ranking` see `rankOrder`.
 */
export type EvictionPolicy = ValueOf<typeof policy>;

/**
 * A key by which pods are ranked. katalyst's eviction manager (pkg/agent/evictionmanager/rule) compares level, priority
 * and scope.
 */
export type RankKeyName = EvictionPolicy["ranking"][number];

/** Limits of evictions that are accepted within `windowMs`; null for no limit. */
export type EvictionLimits = EvictionPolicy["limits"];

/** Pods that are never candidates, in addition to critical, static, mirror and terminating ones. */
export type SkipRules = EvictionPolicy["skip"];

/** Bounds of grace periods requested by plugins. */
export type GraceRules = EvictionPolicy["grace"];

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

/** Whether eviction is live, in full dry run, or in dry run for some plugins (`mixed`). */
export type EvictionMode = "live" | "dryRun" | "mixed";

/** Returns the mode for plugins that are registered now or later. */
export function evictionMode(rule: DryRunRule): EvictionMode {
  if (isFullDryRun(rule)) return "dryRun";
  const isAnyDry = rule.dryRunPlugins.some((item) => !item.startsWith("-") && isDryRun(rule, item));
  return isAnyDry ? "mixed" : "live";
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
