import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { ObservedPod } from "../../eviction/index.ts";
import type { InTreePlugin } from "./in-tree-plugin.ts";
import { graceSeconds } from "./settings.ts";
import { victimOrder } from "./victims.ts";

export type PidOveruseSettings = EvictionSettings["pidOveruse"];

/**
 * Requests hard eviction of pods with more processes and threads than the threshold, because all pods share the
 * machine's PIDs. Based on katalyst-core plugin/cpu/pid_overuse.go. Inactive until a threshold is set.
 */
export const pidOveruse: InTreePlugin<PidOveruseSettings> = {
  name: "pid-overuse-eviction-plugin",
  onByDefault: false,
  overuse:
    ({ readings, settings, valueIn }) =>
    async (pods, signal) => {
      const { threshold, gracePeriod } = settings();
      if (threshold === 0) return [];
      const activity = valueIn("podPids", await readings.podActivity(signal));
      if (!activity) return undefined;
      const pidsOf = ({ pod }: ObservedPod) => activity.get(pod.uid)?.pids;
      const over = pods.filter((pod) => (pidsOf(pod) ?? 0) > threshold);
      return victimOrder(over, (pod) => [pidsOf(pod)]).map((observed) => ({
        pod: observed.pod,
        reason: `${pidsOf(observed)} processes and threads > threshold ${threshold}`,
        force: true,
        gracePeriodSeconds: graceSeconds(gracePeriod),
      }));
    },
};
