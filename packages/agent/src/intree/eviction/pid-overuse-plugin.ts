import { type EvictPodsAnswer, noPods, type ObservedPod } from "../../eviction/index.ts";
import type { InTreeAnswers, InTreePlugin } from "./in-tree-plugin.ts";
import { victimOrder } from "./victim-order.ts";

/** When a pod has too many processes. */
export interface PidOveruseSettings {
  /** Pods with more processes and threads are named; 0: none. */
  threshold: number;
  /** Seconds; null is each pod's own. */
  gracePeriodSeconds: number | null;
}

export const defaultPidOveruseSettings: Readonly<PidOveruseSettings> = {
  threshold: 0,
  gracePeriodSeconds: null,
};

/**
 * Names, as forced, the pods that have more processes and threads than they may: process numbers are one space for the
 * whole machine. After katalyst's plugin/cpu/pid_overuse.go. No pod is named before a threshold is set.
 */
export const pidOveruse: InTreePlugin<PidOveruseSettings> = {
  name: "pid-overuse-eviction-plugin",
  onByDefault: false,
  defaults: defaultPidOveruseSettings,
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
          reason: `it has ${pidsOf(observed)} processes and threads, more than ${threshold}`,
          force: true,
          gracePeriodSeconds,
        })),
        condition: null,
      };
    },
  }),
};
