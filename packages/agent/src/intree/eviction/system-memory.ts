import type { MemoryState } from "../../host/index.ts";
import type { MemoryGrace, Severity } from "./severity.ts";
import type { RankingMetric } from "./victim-ranking.ts";

/** When the machine as a whole is short of memory, and who goes then. */
export interface SystemMemorySettings extends MemoryGrace {
  /** Free memory below this is pressure, as is less than the kernel's watermark scale asks for. Bytes, 0 or more. */
  freeMinimumBytes: number;
  /** Stalls of the workload's cgroup from which on its pods are looked at: `some avg10`, percent, over 0 to 100. */
  workloadPressurePercent: number;
  /** A pod above this counts as pressed, percent, 0 to 100. */
  podPressurePercent: number;
  /** So many pressed pods it takes, 1 or more. */
  pressedPods: number;
  /** The mean over all shared and dedicated pods from which on it is pressure, percent, over 0 to 100. */
  meanPressurePercent: number;
  /** How long it has to last until reclaimed pods go, milliseconds; three times as long until others do. */
  pressureDurationMs: number;
  /** The workload's cgroup below the mount, "/kubepods/burstable"; null is the kubelet's group of burstable pods. */
  workloadCgroup: string | null;
  /** How often the machine is looked at, milliseconds. Rounds in between take the last look's word. */
  detectionPeriodMs: number;
  /** After a pod was named, none is for so long, milliseconds: what it held is given back first. */
  cooldownMs: number;
  /** A victim uses at least this share of the memory of the NUMA node with the least free, 0 to 1. */
  victimMinimumShare: number;
  ranking: readonly RankingMetric[];
}

export const defaultSystemMemorySettings: Readonly<SystemMemorySettings> = {
  freeMinimumBytes: 0,
  workloadPressurePercent: 15,
  podPressurePercent: 1,
  pressedPods: 3,
  meanPressurePercent: 4,
  pressureDurationMs: 15_000,
  workloadCgroup: null,
  detectionPeriodMs: 9_000,
  cooldownMs: 35_000,
  victimMinimumShare: 0.001,
  ranking: ["qosLevel", "priority", "usage"],
  gracePeriodSeconds: null,
  reclaimedGracePeriodSeconds: 10,
};

/** How bad it is, and by which figures. */
export interface MemoryVerdict {
  severity: Severity;
  observed: number;
  threshold: number;
  operator: "lessThan" | "greaterThan";
  unit: "bytes" | "%";
}

/** Judges free memory against the configured minimum and, where it is told, the kernel's distance between watermarks. */
export function judgeFreeMemory(
  { freeBytes, totalBytes, watermarkScaleFactor = 0 }: MemoryState,
  { freeMinimumBytes }: Pick<SystemMemorySettings, "freeMinimumBytes">,
): MemoryVerdict {
  const threshold = Math.max(freeMinimumBytes, (totalBytes * watermarkScaleFactor) / 10_000);
  const severity = freeBytes < threshold ? "reclaimed" : "none";
  return { severity, observed: freeBytes, threshold, operator: "lessThan", unit: "bytes" };
}

/** `some avg10` of the workload and of each shared or dedicated pod that has a figure, percent. */
export interface WorkloadPressure {
  workload: number;
  pods: readonly number[];
}

/** Since when pods have been pressed without a break, monotonic milliseconds. */
export type PressedSince = number | undefined;

/** Judges the workload's stalls. Any look that finds less, or finds nothing out, ends the pressure. */
export function judgePressure(
  since: PressedSince,
  pressure: WorkloadPressure | undefined,
  now: number,
  settings: SystemMemorySettings,
): MemoryVerdict & { since: PressedSince } {
  const { workloadPressurePercent, podPressurePercent, pressedPods, meanPressurePercent } = settings;
  const pods = pressure?.pods ?? [];
  const mean = pods.length === 0 ? 0 : pods.reduce((sum, each) => sum + each, 0) / pods.length;
  const figures = {
    observed: mean,
    threshold: meanPressurePercent,
    operator: "greaterThan",
    unit: "%",
  } as const;
  const isPressed =
    pressure !== undefined &&
    pressure.workload >= workloadPressurePercent &&
    pods.filter((each) => each > podPressurePercent).length >= pressedPods &&
    mean >= meanPressurePercent;
  if (!isPressed) return { ...figures, severity: "none", since: undefined };
  const begun = since ?? now;
  return { ...figures, severity: severityAfter(now - begun, settings), since: begun };
}

function severityAfter(
  elapsedMs: number,
  { pressureDurationMs }: Pick<SystemMemorySettings, "pressureDurationMs">,
): Severity {
  if (elapsedMs >= 3 * pressureDurationMs) return "all";
  return elapsedMs >= pressureDurationMs ? "reclaimed" : "none";
}
