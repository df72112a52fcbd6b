import type { EvictionRecord as RecordMessage } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";

/** Earlier evictions related to a pod, and the disruption budget that protects it. */
export interface EvictionRecord {
  /** UID of the pod. */
  readonly uid: string;
  readonly hasDisruptionBudget: boolean;
  /** Status of the budget; 0 without a budget. */
  readonly disruptionsAllowed: number;
  readonly currentHealthy: number;
  readonly desiredHealthy: number;
  readonly expectedPods: number;
  /** Number of evictions by time window, in the agent's units. */
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
