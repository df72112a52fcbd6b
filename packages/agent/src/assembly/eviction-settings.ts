import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { AnnotationValue, KillerTable, QosAnnotations } from "../eviction/index.ts";
import { pairOf } from "../intree/index.ts";

/** Returns the killer for each QoS level and class. */
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

/** Returns the annotations that set a QoS level in addition to katalyst's. */
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
