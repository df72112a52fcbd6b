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
}

/** The most recent samples. */
export class CpuHistory {
  #looks: CpuSample[] = [];

  /** @param most number of samples to keep */
  add(look: CpuSample, most: number): void {
    this.#looks = [...this.#looks, look].slice(-most);
  }

  /** Returns the number of samples above a threshold. */
  countAbove(figure: keyof CpuSample, bound: number): number {
    return this.#looks.filter((look) => look[figure] > bound).length;
  }

  get last(): CpuSample | undefined {
    return this.#looks.at(-1);
  }
}

/** CPU pressure, with the last value and the threshold that it exceeds. */
export interface CpuVerdict {
  scope: "load" | "usage";
  isHard: boolean;
  observed: number;
  threshold: number;
}

/**
 * Evaluates the samples: hard before soft, load before usage. Samples missing after the start count as not exceeding.
 */
export function evaluateCpu(history: CpuHistory, settings: SystemCpuSettings): CpuVerdict | undefined {
  const { loadUpper, loadLower, usageUpper, usageLower, looks, metShare } = settings;
  const bounds = [
    { scope: "load", isHard: true, threshold: loadUpper },
    { scope: "usage", isHard: true, threshold: usageUpper },
    { scope: "load", isHard: false, threshold: loadLower },
    { scope: "usage", isHard: false, threshold: usageLower },
  ] as const;
  for (const { scope, isHard, threshold } of bounds) {
    if (threshold <= 0 || history.countAbove(scope, threshold) / looks < metShare) continue;
    return { scope, isHard, threshold, observed: history.last?.[scope] ?? threshold };
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
    const { readings, settings, valueIn } = context;
    const history = new CpuHistory();
    const rounds = new RegularRounds(context);
    return {
      async observe(_pods, signal) {
        if (rounds.take()) await addSample(history, context, signal);
        const verdict = evaluateCpu(history, settings());
        if (!verdict) return { values: lastSample(history, settings()) };
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
function lastSample(
  { last }: CpuHistory,
  { usageUpper, loadUpper }: SystemCpuSettings,
): ThresholdValues | undefined {
  if (!last) return undefined;
  if (usageUpper > 0) return { scope: "usage", thresholdValue: usageUpper, observedValue: last.usage };
  if (loadUpper <= 0) return undefined;
  return { scope: "load", thresholdValue: loadUpper, observedValue: last.load };
}

async function addSample(
  history: CpuHistory,
  { readings, settings, valueIn }: PluginContext<SystemCpuSettings>,
  signal: AbortSignal,
): Promise<void> {
  const [cpu, load] = await Promise.all([
    readings.cpu(signal),
    readings.loadAverage(signal),
    // The CPU usage of pods is the difference between two readings.
    readings.podActivity(signal),
  ]);
  // The first reading has no CPU usage yet. This is not an error.
  const use = cpu.state === "missing" ? undefined : valueIn("cpu", cpu);
  const tasks = valueIn("loadAverage", load);
  if (!use || tasks === undefined) return;
  history.add({ usage: use.share, load: tasks / use.cpus }, settings().looks);
}
