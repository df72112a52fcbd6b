/** When the CPUs of the machine are short, and how pods are evicted then. */
export interface SystemCpuSettings {
  /** Runnable tasks for each CPU (load average of a minute) above which a look counts as hard; 0: not looked at. */
  loadUpper: number;
  /** The same for soft pressure. */
  loadLower: number;
  /** Use of all CPUs, 0 to 1, above which a look counts as hard; 0: not looked at. */
  usageUpper: number;
  /** The same for soft pressure. */
  usageLower: number;
  /** Looks that are kept, one each round; 1 or more. */
  looks: number;
  /** The share of all these looks that must be above, over 0 to 1. */
  metShare: number;
  /** After a pod was named, none is for so long, milliseconds. */
  cooldownMs: number;
  /** Seconds; null is each pod's own. */
  gracePeriodSeconds: number | null;
}

export const defaultSystemCpuSettings: Readonly<SystemCpuSettings> = {
  loadUpper: 2,
  loadLower: 1,
  usageUpper: 0.8,
  usageLower: 0.6,
  looks: 10,
  metShare: 0.8,
  cooldownMs: 300_000,
  gracePeriodSeconds: null,
};

/** One look: use of all CPUs from 0 to 1, and runnable tasks for each CPU. */
export interface CpuLook {
  usage: number;
  load: number;
}

/** The last looks. */
export class CpuHistory {
  #looks: CpuLook[] = [];

  /** @param most how many are kept */
  add(look: CpuLook, most: number): void {
    this.#looks = [...this.#looks, look].slice(-most);
  }

  /** How many looks were above a bound. */
  countAbove(figure: keyof CpuLook, bound: number): number {
    return this.#looks.filter((look) => look[figure] > bound).length;
  }

  get last(): CpuLook | undefined {
    return this.#looks.at(-1);
  }
}

/** Pressure, with the last figure and the bound that it is compared with. */
export interface CpuVerdict {
  scope: "load" | "usage";
  isHard: boolean;
  observed: number;
  threshold: number;
}

/** Hard before soft, load before usage. Looks that are still to come count as not above: a start begins calm. */
export function judgeCpu(history: CpuHistory, settings: SystemCpuSettings): CpuVerdict | undefined {
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
