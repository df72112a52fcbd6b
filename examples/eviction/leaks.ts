import type { ActivePod, EvictionPluginOptions } from "@nodekeeper/sdk";

/** Label of the pods that this plugin treats as leaking memory. Its value must be "true". */
const SAMPLE_LABEL = "example.com/sample";
const FIRST_USE_MIB = 64;

export interface LeakOptions {
  /** Memory that all sample pods together may use, in MiB. If they use more, one is evicted. */
  limitMiB: number;
  /** Memory that each sample pod leaks, in MiB per second. */
  leakMiB: number;
  /**
   * Milliseconds from the first call with running sample pods until the limit is reached: these pods are assumed to
   * have leaked before. Default: no earlier leak is assumed.
   */
  firstPressureMs?: number;
  /** Milliseconds since the epoch. */
  now?: () => number;
}

/**
 * Returns the functions of an eviction plugin that watches simulated memory, which each sample pod leaks from its
 * start. If the pods together use more than the limit, the one that uses most is evicted first. Its replacement starts
 * with little memory, so the pressure ends and returns after a while.
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

  // Sets how much the first pods are assumed to have leaked before, so that the limit is reached in time.
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
