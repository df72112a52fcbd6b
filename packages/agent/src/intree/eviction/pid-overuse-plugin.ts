import { type EvictPodsAnswer, noPods, type ObservedPod } from "../../eviction/index.ts";
import type { InTreeAnswers, InTreePlugin } from "./in-tree-plugin.ts";
import { victimOrder } from "./victim-order.ts";

/** Threshold for the number of processes of a pod. */
export interface PidOveruseSettings {
  /** Number of processes and threads above which a pod is selected; 0: never. */
  threshold: number;
  /** Seconds; null for the grace period of the pod spec. */
  gracePeriodSeconds: number | null;
}

/**
 * Selects, as hard evictions, pods with more processes and threads than the threshold, since PIDs are shared by the whole
 * machine. After katalyst-core plugin/cpu/pid_overuse.go. Inactive until a threshold is set.
 */
export const pidOveruse: InTreePlugin<PidOveruseSettings> = {
  name: "pid-overuse-eviction-plugin",
  onByDefault: false,
  answers: ({ parts, settings, missing }): InTreeAnswers => ({
    async getEvictPods(pods, signal): Promise<EvictPodsAnswer> {
      const { threshold, gracePeriodSeconds } = settings();
      if (threshold === 0) return noPods;
      const activity = missing.valueOf("podPids", await parts.readings.podActivity(signal));
      if (!activity) return noPods;
      const pidsOf = ({ pod }: ObservedPod) => activity.get(pod.uid)?.pids;
      const over = pods.filter((pod) => (pidsOf(pod) ?? 0) > threshold);
      return {
        pods: victimOrder(over, (pod) => [pidsOf(pod)]).map((observed) => ({
          pod: observed.pod,
          reason: `${pidsOf(observed)} processes and threads > threshold ${threshold}`,
          force: true,
          gracePeriodSeconds,
        })),
        condition: null,
      };
    },
  }),
};
