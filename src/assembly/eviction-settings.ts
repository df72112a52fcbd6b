import type { AgentConfiguration } from "../config/index.ts";
import type { EvictionPolicy, EvictionSettings, KillerTable } from "../eviction/index.ts";

/** What the operator has decided about eviction; the part that `replay` tries another of. */
export function evictionPolicyOf({ eviction }: Pick<AgentConfiguration, "eviction">): EvictionPolicy {
  const { limits, skip, grace } = eviction;
  return {
    burst: eviction.burst,
    dryRunPlugins: eviction.dryRunPlugins,
    conditionTransitionMs: eviction.conditionTransitionPeriod,
    taintPrefix: eviction.taintPrefix,
    cooldownMs: eviction.cooldown,
    releaseMarginMs: eviction.releaseMargin,
    longestReleaseMs: eviction.longestRelease,
    failedEvictionPauseMs: eviction.failedEvictionPause,
    forgetPluginMs: eviction.forgetPluginAfter,
    limits: {
      windowMs: limits.window,
      perNamespace: limits.perNamespace || null,
      perOwner: limits.perOwner || null,
    },
    skip: {
      labelKeys: skip.labels,
      annotationKeys: skip.annotations,
      evictDaemonSetPods: !skip.daemonSets,
    },
    grace: { longestSeconds: Math.floor(grace.longest / 1000), allowZero: grace.allowZero },
  };
}

/** What the operator sets of rounds besides the policy. */
export function evictionSettingsOf({ eviction }: Pick<AgentConfiguration, "eviction">): EvictionSettings {
  const { syncPeriod, callTimeout, records } = eviction;
  return {
    syncPeriodMs: syncPeriod,
    callTimeoutMs: callTimeout,
    records: { maxAgeMs: records.maxAge, maxBytes: records.maxSize },
  };
}

/** Which killer takes which pods. */
export function killerTableOf({ eviction }: Pick<AgentConfiguration, "eviction">): KillerTable {
  const rules = Object.fromEntries(eviction.killerRules.map((rule) => rule.split("=")));
  const { reclaimed_cores, shared_cores, dedicated_cores, BestEffort, Burstable, Guaranteed } = rules;
  return {
    default: eviction.killer,
    byQosLevel: withoutAbsent({ reclaimed_cores, shared_cores, dedicated_cores }),
    byQosClass: withoutAbsent({ BestEffort, Burstable, Guaranteed }),
  };
}

function withoutAbsent<T>(table: Record<string, T | undefined>): Record<string, T> {
  const entries = Object.entries(table).filter((entry): entry is [string, T] => entry[1] !== undefined);
  return Object.fromEntries(entries);
}
