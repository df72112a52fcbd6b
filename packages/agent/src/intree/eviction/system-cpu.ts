/** Thresholds of CPU pressure, and the eviction of pods. */
export interface SystemCpuSettings {
  /** One-minute load average per CPU above which a sample counts as hard pressure; 0: not checked. */
  loadUpper: number;
  /** The same for soft pressure. */
  loadLower: number;
  /** Usage of all CPUs, 0 to 1, above which a sample counts as hard pressure; 0: not checked. */
  usageUpper: number;
  /** The same for soft pressure. */
  usageLower: number;
  /** Number of most recent samples considered, one for each round; 1 or more. */
  looks: number;
  /** Share of these samples that must exceed the threshold, over 0 to 1. */
  metShare: number;
  /** How long no further pod is selected after one was, milliseconds. */
  cooldownMs: number;
  /** Seconds; null for the grace period of the pod spec. */
  gracePeriodSeconds: number | null;
}

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

  /** Number of samples above a threshold. */
  countAbove(figure: keyof CpuSample, bound: number): number {
    return this.#looks.filter((look) => look[figure] > bound).length;
  }

  get last(): CpuSample | undefined {
    return this.#looks.at(-1);
  }
}

/** Pressure, with the last value and the threshold it exceeds. */
export interface CpuVerdict {
  scope: "load" | "usage";
  isHard: boolean;
  observed: number;
  threshold: number;
}

/** Evaluates the samples: hard before soft, load before usage. Missing samples after the start count as not exceeding. */
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
