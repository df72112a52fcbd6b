import type { AgentConfiguration } from "../config/index.ts";
import type { AnnotationValue, EvictionSettings, KillerTable, QosAnnotations } from "../eviction/index.ts";
import type { InTreeEvictionSettings, RankingMetric } from "../intree/index.ts";

/** Settings of rounds besides the policy. */
export function evictionSettingsOf({ eviction }: Pick<AgentConfiguration, "eviction">): EvictionSettings {
  const { syncPeriod, callTimeout, outOfTurnRounds, records } = eviction;
  return {
    syncPeriodMs: syncPeriod,
    callTimeoutMs: callTimeout,
    outOfTurnRounds,
    records: { maxAgeMs: records.maxAge, maxBytes: records.maxSize },
  };
}

/** Settings of the in-tree eviction plugins. */
export function inTreeEvictionSettingsOf({
  eviction,
}: Pick<AgentConfiguration, "eviction">): InTreeEvictionSettings {
  const { systemMemory, numaMemory, rssOveruse, reclaimedResources } = eviction;
  const { rootfsPressure, rootfsOveruse, pidOveruse, systemCpu } = eviction;
  return {
    systemMemory: {
      freeMinimumBytes: systemMemory.freeMinimum,
      workloadPressurePercent: systemMemory.workloadPressure,
      podPressurePercent: systemMemory.podPressure,
      pressedPods: systemMemory.pressedPods,
      meanPressurePercent: systemMemory.meanPressure,
      pressureDurationMs: systemMemory.pressureDuration,
      workloadCgroup: systemMemory.workloadCgroup || null,
      detectionPeriodMs: systemMemory.detectionPeriod,
      cooldownMs: systemMemory.cooldown,
      victimMinimumShare: systemMemory.victimMinimumShare,
      ...memoryOf(systemMemory),
    },
    numaMemory: {
      lowGuardBytes: numaMemory.lowGuard,
      minGapBytes: numaMemory.minGap,
      lowReserveBytes: numaMemory.lowReserve,
      largestReserveShare: numaMemory.largestReserveShare,
      reclaimedCounts: numaMemory.reclaimedCounts,
      allCounts: Math.max(numaMemory.allCounts, numaMemory.reclaimedCounts + 1),
      dangerCounts: Math.min(numaMemory.dangerCounts, numaMemory.allCounts),
      victimMinimumShare: numaMemory.victimMinimumShare,
      ...memoryOf(numaMemory),
    },
    rssOveruse: {
      rateThreshold: rssOveruse.rateThreshold,
      labels: Object.fromEntries(rssOveruse.labels.map(pairOf)),
    },
    reclaimedResources: {
      thresholds: numbersOf(reclaimedResources.thresholds),
      softThresholds: numbersOf(reclaimedResources.softThresholds),
      toleranceSeconds: Math.round(reclaimedResources.tolerance / 1000),
      gracePeriodSeconds: graceOf(reclaimedResources.gracePeriod),
      skipZeroResources: reclaimedResources.skipZeroResources,
    },
    rootfsPressure: {
      minimumFreePercent: rootfsPressure.minimumFree,
      minimumInodesFreePercent: rootfsPressure.minimumInodesFree,
      minimumCapacityBytes: rootfsPressure.minimumCapacity,
      podMinimumUsedBytes: rootfsPressure.podMinimumUsed,
      podMinimumInodes: rootfsPressure.podMinimumInodes,
      gracePeriodSeconds: graceOf(rootfsPressure.gracePeriod),
    },
    rootfsOveruse: {
      sharedThresholdBytes: rootfsOveruse.sharedThreshold,
      reclaimedThresholdBytes: rootfsOveruse.reclaimedThreshold,
      sharedNamespaces: rootfsOveruse.sharedNamespaces,
      mostPods: rootfsOveruse.mostPods,
      gracePeriodSeconds: graceOf(rootfsOveruse.gracePeriod),
    },
    pidOveruse: {
      threshold: pidOveruse.threshold,
      gracePeriodSeconds: graceOf(pidOveruse.gracePeriod),
    },
    systemCpu: {
      loadUpper: systemCpu.loadUpper,
      loadLower: systemCpu.loadLower,
      usageUpper: systemCpu.usageUpper,
      usageLower: systemCpu.usageLower,
      looks: systemCpu.looks,
      metShare: systemCpu.metShare,
      cooldownMs: systemCpu.cooldown,
      gracePeriodSeconds: graceOf(systemCpu.gracePeriod),
    },
  };
}

type MemorySection = AgentConfiguration["eviction"]["systemMemory" | "numaMemory"];

function memoryOf({ ranking, gracePeriod, reclaimedGracePeriod }: MemorySection) {
  return {
    ranking: [...new Set(ranking as RankingMetric[])],
    gracePeriodSeconds: graceOf(gracePeriod),
    reclaimedGracePeriodSeconds: graceOf(reclaimedGracePeriod),
  };
}

// 0 is the pod's own; a fraction of a second is rounded up, for 0 would kill at once.
function graceOf(ms: number): number | null {
  return ms === 0 ? null : Math.max(1, Math.round(ms / 1000));
}

function numbersOf(list: readonly string[]): Record<string, number> {
  return Object.fromEntries(list.map((text) => [pairOf(text)[0], Number(pairOf(text)[1])]));
}

function pairOf(text: string): [name: string, value: string] {
  const at = text.lastIndexOf("=");
  return [text.slice(0, at), text.slice(at + 1)];
}

/** Which killer evicts which pods. */
export function killerTableOf({ eviction }: Pick<AgentConfiguration, "eviction">): KillerTable {
  const { killer, killerRules } = eviction;
  const rules = Object.fromEntries(killerRules.map((rule) => rule.split("=")));
  const { reclaimed_cores, shared_cores, dedicated_cores, BestEffort, Burstable, Guaranteed } = rules;
  return {
    default: killer,
    byQosLevel: withoutAbsent({ reclaimed_cores, shared_cores, dedicated_cores }),
    byQosClass: withoutAbsent({ BestEffort, Burstable, Guaranteed }),
  };
}

/** Annotations that state a QoS level besides katalyst's own. */
export function qosAnnotationsOf({ eviction }: Pick<AgentConfiguration, "eviction">): QosAnnotations {
  const { reclaimed, shared, dedicated, system } = eviction.qosAnnotations;
  return {
    reclaimed_cores: annotationsOf(reclaimed),
    shared_cores: annotationsOf(shared),
    dedicated_cores: annotationsOf(dedicated),
    system_cores: annotationsOf(system),
  };
}

function annotationsOf(list: readonly string[]): AnnotationValue[] {
  return list.map((text) => {
    const [key, value] = pairOf(text);
    return { key, value };
  });
}

function withoutAbsent<T>(table: Record<string, T | undefined>): Record<string, T> {
  const entries = Object.entries(table).filter((entry): entry is [string, T] => entry[1] !== undefined);
  return Object.fromEntries(entries);
}
