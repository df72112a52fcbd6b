import type { EvictionRecord as RecordMessage } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";

/** What is known of former evictions around a pod, and of the disruption budget that guards it. */
export interface EvictionRecord {
  /** Of the pod. */
  readonly uid: string;
  readonly hasDisruptionBudget: boolean;
  /** The budget's figures; 0 where there is none. */
  readonly disruptionsAllowed: number;
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly expectedPods: number;
  /** How many evictions fell into stretches of time; the agent's units. */
  readonly buckets: readonly { readonly time: number; readonly duration: number; readonly count: number }[];
}

export function readRecord({ hasPdb, buckets, ...figures }: RecordMessage): EvictionRecord {
  return {
    ...figures,
    hasDisruptionBudget: hasPdb,
    buckets: (buckets?.list ?? []).map(({ time, duration, count }) => ({
      time: Number(time),
      duration: Number(duration),
      count: Number(count),
    })),
  };
}
