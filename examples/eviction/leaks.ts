import type { ActivePod, EvictionPluginOptions } from "../../sdk/index.ts";

/** Pods with this label leak, as far as this plugin goes. */
const SAMPLE_LABEL = "example.com/sample";
const FIRST_USE_MIB = 64;

export interface LeakOptions {
  /** What all sample pods together may use before one has to go, MiB. */
  limitMiB: number;
  /** How much every sample pod uses more with each second, MiB. */
  leakMiB: number;
  /** Milliseconds since the epoch. */
  now?: () => number;
}

/**
 * What an eviction plugin answers that watches a made-up memory: every sample pod leaks from its start on. When they
 * use more than the limit together, the one that uses most has to go. Its successor begins with little, so that the
 * pressure ends, and comes back after a while.
 */
export function leakingPods({
  limitMiB,
  leakMiB,
  now = Date.now,
}: LeakOptions): Required<Pick<EvictionPluginOptions, "thresholdMet" | "getTopEvictionPods">> {
  const use = (pod: ActivePod): number => {
    const seconds = pod.startedAt === undefined ? 0 : Math.max(0, now() - pod.startedAt) / 1_000;
    return FIRST_USE_MIB + Math.round(leakMiB * seconds);
  };
  return {
    thresholdMet(pods) {
      const observedValue = samplesOf(pods).reduce((sum, pod) => sum + use(pod), 0);
      return {
        metType: observedValue > limitMiB ? "hard" : "none",
        scope: "sample-memory",
        observedValue,
        thresholdValue: limitMiB,
        condition: { name: "SamplePressure", effects: ["NoSchedule"] },
      };
    },
    getTopEvictionPods: (pods) => samplesOf(pods).sort((a, b) => use(b) - use(a)),
  };
}

function samplesOf(pods: readonly ActivePod[]): ActivePod[] {
  return pods.filter(({ labels }) => labels[SAMPLE_LABEL] === "true");
}
