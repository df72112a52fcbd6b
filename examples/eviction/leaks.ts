import type { ActivePod, EvictionPluginOptions } from "@nodekeeper/sdk";

/** Pods with this label leak, as far as this plugin goes. */
const SAMPLE_LABEL = "example.com/sample";
const FIRST_USE_MIB = 64;

export interface LeakOptions {
  /** What all sample pods together may use before one is evicted, MiB. */
  limitMiB: number;
  /** How much every sample pod uses more with each second, MiB. */
  leakMiB: number;
  /**
   * When the first pod is evicted, milliseconds after sample pods are first seen: those are taken to have leaked before.
   * Default: when they have leaked enough.
   */
  firstPressureMs?: number;
  /** Milliseconds since the epoch. */
  now?: () => number;
}

/**
 * What an eviction plugin answers that watches a made-up memory: every sample pod leaks from its start on. When they
 * use more than the limit together, the one that uses most is selected. Its successor begins with little, so that the
 * pressure ends, and comes back after a while.
 */
export function leakingPods({
  limitMiB,
  leakMiB,
  firstPressureMs,
  now = Date.now,
}: LeakOptions): Required<Pick<EvictionPluginOptions, "thresholdMet" | "getTopEvictionPods">> {
  const earlier = new Map<string, number>();
  let isFirstLook = firstPressureMs !== undefined;
  const leaked = (pod: ActivePod, at: number): number =>
    pod.startedAt === undefined ? 0 : (leakMiB * Math.max(0, at - pod.startedAt)) / 1_000;
  const use = (pod: ActivePod, at = now()): number =>
    FIRST_USE_MIB + Math.round(leaked(pod, at) + (earlier.get(pod.uid) ?? 0));
  const total = (pods: readonly ActivePod[], at: number) => pods.reduce((sum, pod) => sum + use(pod, at), 0);

  // Makes up what the first pods leaked before, so that the limit is reached in time.
  const look = (pods: readonly ActivePod[]): void => {
    const running = pods.filter(({ startedAt }) => startedAt !== undefined);
    if (!isFirstLook || running.length === 0) return;
    isFirstLook = false;
    const missing = limitMiB - total(running, now() + (firstPressureMs ?? 0));
    for (const { uid } of running) earlier.set(uid, Math.max(0, missing / running.length));
  };
  return {
    thresholdMet(pods) {
      const samples = samplesOf(pods);
      look(samples);
      const observedValue = total(samples, now());
      return {
        metType: observedValue > limitMiB ? "hard" : "none",
        scope: "sample-memory",
        observedValue,
        thresholdValue: limitMiB,
        condition: { name: "SamplePressure", effects: ["PreferNoSchedule"] },
      };
    },
    getTopEvictionPods: (pods) => samplesOf(pods).sort((a, b) => use(b) - use(a)),
  };
}

function samplesOf(pods: readonly ActivePod[]): ActivePod[] {
  return pods.filter(({ labels }) => labels[SAMPLE_LABEL] === "true");
}
