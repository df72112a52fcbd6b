import type { MemoryState } from "../../host/index.ts";
import type { MemoryGrace, Severity } from "./severity.ts";
import type { RankingMetric } from "./victim-ranking.ts";

/** Thresholds of memory pressure of the whole machine, and the selection of pods. */
export interface SystemMemorySettings extends MemoryGrace {
  /** Free memory below which there is pressure, in addition to the kernel's watermark scale. Bytes, 0 or more. */
  freeMinimumBytes: number;
  /** PSI (`some avg10`, percent, over 0 to 100) of the workload's cgroup from which on its pods are checked. */
  workloadPressurePercent: number;
  /** PSI above which a pod counts as stalled, percent, 0 to 100. */
  podPressurePercent: number;
  /** Number of stalled pods required for pressure, 1 or more. */
  pressedPods: number;
  /** Mean PSI of all shared and dedicated pods required for pressure, percent, over 0 to 100. */
  meanPressurePercent: number;
  /** Duration of PSI pressure after which reclaimed pods are candidates, milliseconds; all pods after three times that. */
  pressureDurationMs: number;
  /** The workload's cgroup, "/kubepods/burstable"; null for the kubelet's cgroup for burstable pods. */
  workloadCgroup: string | null;
  /** Interval between samples under pressure, milliseconds. Rounds in between use the last verdict. */
  detectionPeriodMs: number;
  /** How long no further pod is selected after one was, milliseconds, so that its memory is freed first. */
  cooldownMs: number;
  /** Minimum share of the memory of the NUMA node with the least free memory that a victim uses, 0 to 1. */
  victimMinimumShare: number;
  ranking: readonly RankingMetric[];
}

/** Severity, with the values it is based on. */
export interface MemoryVerdict {
  severity: Severity;
  observed: number;
  threshold: number;
  operator: "lessThan" | "greaterThan";
  unit: "bytes" | "%";
}

/** Compares free memory with the configured minimum and, if known, with the kernel's watermark scale. */
export function judgeFreeMemory(
  { freeBytes, totalBytes, watermarkScaleFactor = 0 }: MemoryState,
  { freeMinimumBytes }: Pick<SystemMemorySettings, "freeMinimumBytes">,
): MemoryVerdict {
  const threshold = Math.max(freeMinimumBytes, (totalBytes * watermarkScaleFactor) / 10_000);
  const severity = freeBytes < threshold ? "reclaimed" : "none";
  return { severity, observed: freeBytes, threshold, operator: "lessThan", unit: "bytes" };
}

/** PSI (`some avg10`, percent) of the workload and of each shared or dedicated pod that has a reading. */
export interface WorkloadPressure {
  workload: number;
  pods: readonly number[];
}

/** Start of uninterrupted PSI pressure, monotonic milliseconds. */
export type PressedSince = number | undefined;

/** Evaluates the workload's PSI. A sample below the thresholds, or a failed one, ends the pressure. */
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
  const startedAt = since ?? now;
  return { ...figures, severity: severityAfter(now - startedAt, settings), since: startedAt };
}

function severityAfter(
  elapsedMs: number,
  { pressureDurationMs }: Pick<SystemMemorySettings, "pressureDurationMs">,
): Severity {
  if (elapsedMs >= 3 * pressureDurationMs) return "all";
  return elapsedMs >= pressureDurationMs ? "reclaimed" : "none";
}
