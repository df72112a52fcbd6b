import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { InTreePlugin, PluginContext, ThresholdValues } from "./in-tree-plugin.ts";
import { RegularRounds } from "./regular-rounds.ts";
import { graceSeconds } from "./settings.ts";
import { isReclaimed, victimOrder } from "./victims.ts";

export type SystemCpuSettings = EvictionSettings["systemCpu"];

/** One sample: usage of all CPUs from 0 to 1, and load average per CPU. */
export interface CpuSample {
  usage: number;
  load: number;
  /** Monotonic milliseconds. */
  at: number;
}

// Tolerance for missing samples and delayed rounds: samples older than this multiple of their periods are dropped.
const MAX_AGE_SHARE = 1.5;

/** CPU pressure, with the last value and the threshold that it exceeds. */
export interface CpuVerdict {
  scope: "load" | "usage";
  isHard: boolean;
  observed: number;
  threshold: number;
}

/**
 * Evaluates the last `looks` samples: hard before soft, load before usage. Missing samples count as not exceeding.
 */
export function evaluateCpu(
  samples: readonly CpuSample[],
  settings: SystemCpuSettings,
): CpuVerdict | undefined {
  const { loadUpper, loadLower, usageUpper, usageLower, looks, metShare } = settings;
  const bounds = [
    { scope: "load", isHard: true, threshold: loadUpper },
    { scope: "usage", isHard: true, threshold: usageUpper },
    { scope: "load", isHard: false, threshold: loadLower },
    { scope: "usage", isHard: false, threshold: usageLower },
  ] as const;
  const last = samples.slice(-looks);
  for (const { scope, isHard, threshold } of bounds) {
    const above = last.filter((sample) => sample[scope] > threshold).length;
    if (threshold <= 0 || above / looks < metShare) continue;
    return { scope, isHard, threshold, observed: last.at(-1)?.[scope] ?? threshold };
  }
  return undefined;
}

// BestEffort pods are evicted first.
const qosClassOrder = { BestEffort: 2, Burstable: 1, Guaranteed: 0 } as const;

/**
 * Evicts pods under CPU pressure of the whole machine: most of the last samples exceeded the threshold for CPU usage or
 * load. Based on katalyst-core plugin/cpu/system_pressure.go. Pods with exclusive CPUs (dedicated_cores) are not
 * evicted.
 */
export const systemCpuPressure: InTreePlugin<SystemCpuSettings> = {
  name: "system-cpu-pressure-eviction-plugin",
  onByDefault: false,
  pressure(context) {
    const { readings, settings, valueIn, clock, roundPeriodMs } = context;
    let samples: readonly CpuSample[] = [];
    /** Whether the last regular round took a sample. */
    let isSampled = false;
    const rounds = new RegularRounds(context);
    return {
      async observe(_pods, signal) {
        if (rounds.take()) {
          isSampled = false;
          const sample = await readSample(context, signal);
          isSampled = sample !== undefined;
          const since = clock.monotonic() - settings().looks * roundPeriodMs() * MAX_AGE_SHARE;
          if (sample) samples = [...samples.filter(({ at }) => at >= since), sample].slice(-settings().looks);
        }
        // Earlier samples evict no pod while the reading is missing.
        if (!isSampled) return {};
        const verdict = evaluateCpu(samples, settings());
        if (!verdict) return { values: valuesOf(samples.at(-1), settings()) };
        const { scope, threshold, observed, isHard } = verdict;
        return {
          values: { scope, thresholdValue: threshold, observedValue: observed },
          // Soft pressure sets the condition and evicts no pod.
          metType: isHard ? "hard" : "none",
          condition: "SystemCPU",
          pressure: isHard ? verdict : undefined,
        };
      },
      cooldownMs: () => settings().cooldown,
      async victims(pods, _verdict, { topN }, signal) {
        const activity = valueIn("podCpu", await readings.podActivity(signal));
        if (!activity) return undefined;
        const candidates = pods.filter(({ pod }) => pod.qosLevel !== "dedicated_cores");
        const ranked = victimOrder(candidates, (observed) => [
          isReclaimed(observed) ? 1 : 0,
          qosClassOrder[observed.pod.qosClass],
          -observed.pod.priority,
          activity.get(observed.pod.uid)?.cpu,
        ]);
        return { pods: ranked.slice(0, topN), gracePeriodSeconds: graceSeconds(settings().gracePeriod) };
      },
    };
  },
};

// Returns the last sample and the threshold that is checked. Pressure requires that most samples exceed it.
function valuesOf(
  last: CpuSample | undefined,
  { usageUpper, loadUpper }: SystemCpuSettings,
): ThresholdValues | undefined {
  if (!last) return undefined;
  if (usageUpper > 0) return { scope: "usage", thresholdValue: usageUpper, observedValue: last.usage };
  if (loadUpper <= 0) return undefined;
  return { scope: "load", thresholdValue: loadUpper, observedValue: last.load };
}

// Returns undefined if a reading is missing.
async function readSample(
  { readings, valueIn, clock }: PluginContext<SystemCpuSettings>,
  signal: AbortSignal,
): Promise<CpuSample | undefined> {
  const [cpu, load] = await Promise.all([
    readings.cpu(signal),
    readings.loadAverage(signal),
    // The CPU usage of pods is the difference between two readings.
    readings.podActivity(signal),
  ]);
  // The first reading has no CPU usage yet. This is not an error.
  const use = cpu.state === "missing" ? undefined : valueIn("cpu", cpu);
  const tasks = valueIn("loadAverage", load);
  if (!use || tasks === undefined) return undefined;
  return { usage: use.share, load: tasks / use.cpus, at: clock.monotonic() };
}
