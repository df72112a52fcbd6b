import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { ObservedPod } from "../../eviction/index.ts";
import { type HostSample, type MemoryState, mapReading, readingValue } from "../../host/index.ts";
import type { PodMemory } from "../../pod-usage/index.ts";
import type {
  InTreePlugin,
  Observation,
  PluginContext,
  PressureRule,
  ThresholdValues,
  Victims,
} from "./in-tree-plugin.ts";
import {
  activePods,
  bytesOnNode,
  candidatesFor,
  graceFor,
  measuredPods,
  memoryVictims,
  type Severity,
  worseOf,
} from "./victims.ts";

export type SystemMemorySettings = EvictionSettings["systemMemory"];

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
  { freeMinimum }: Pick<SystemMemorySettings, "freeMinimum">,
): MemoryVerdict {
  const threshold = Math.max(freeMinimum, (totalBytes * watermarkScaleFactor) / 10_000);
  const severity = freeBytes < threshold ? "reclaimed" : "none";
  return { severity, observed: freeBytes, threshold, operator: "lessThan", unit: "bytes" };
}

/** PSI (`some avg10`, percent) of the workload and of each shared or dedicated pod with a reading. */
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
  const { workloadPressure, podPressure, pressedPods, meanPressure } = settings;
  const pods = pressure?.pods ?? [];
  const mean = pods.length === 0 ? 0 : pods.reduce((sum, each) => sum + each, 0) / pods.length;
  const figures = {
    observed: mean,
    threshold: meanPressure,
    operator: "greaterThan",
    unit: "%",
  } as const;
  const isPressed =
    pressure !== undefined &&
    pressure.workload >= workloadPressure &&
    pods.filter((each) => each > podPressure).length >= pressedPods &&
    mean >= meanPressure;
  if (!isPressed) return { ...figures, severity: "none", since: undefined };
  const startedAt = since ?? now;
  return { ...figures, severity: severityAfter(now - startedAt, settings), since: startedAt };
}

function severityAfter(
  elapsedMs: number,
  { pressureDuration }: Pick<SystemMemorySettings, "pressureDuration">,
): Severity {
  if (elapsedMs >= 3 * pressureDuration) return "all";
  return elapsedMs >= pressureDuration ? "reclaimed" : "none";
}

const SCOPE = "SystemMemory";

/**
 * Evicts pods under memory pressure of the whole machine: too little free memory, or PSI stalls of the workload. Based
 * on katalyst-core pkg/agent/evictionmanager/plugin/memory/system_pressure.go.
 */
export const systemMemoryPressure: InTreePlugin<SystemMemorySettings> = {
  name: "system-memory-pressure-eviction-plugin",
  pressure: (context) => new SystemMemoryRule(context),
};

class SystemMemoryRule implements PressureRule<Severity> {
  readonly #context: PluginContext<SystemMemorySettings>;
  #verdict: MemoryVerdict | undefined;
  /** Free memory while it is not short, for the record; undefined if it is short or unknown. */
  #calm: MemoryVerdict | undefined;
  #detectedAt: number | undefined;
  #pressedSince: PressedSince;

  constructor(context: PluginContext<SystemMemorySettings>) {
    this.#context = context;
  }

  async observe(pods: readonly ObservedPod[], signal: AbortSignal): Promise<Observation<Severity>> {
    const now = this.#context.clock.monotonic();
    const { detectionPeriod } = this.#context.settings();
    const isCalm = !this.#verdict || this.#verdict.severity === "none";
    if (isCalm || this.#detectedAt === undefined || now - this.#detectedAt >= detectionPeriod) {
      await this.#detect(pods, now, signal);
    }
    const verdict = this.#verdict;
    if (!verdict || verdict.severity === "none") return { values: this.#calm && valuesOf(this.#calm) };
    return {
      values: valuesOf(verdict),
      // Without candidate pods, pressure only sets its condition. A met threshold would be recorded in each round.
      metType: candidatesFor(pods, verdict.severity).length > 0 ? "hard" : "none",
      condition: "MemoryPressure",
      pressure: verdict.severity,
    };
  }

  crossed(sample: HostSample): string[] {
    const { clock } = this.#context;
    const settings = this.#context.settings();
    const memory = sample.memory();
    // Only a hint: PSI weights CPUs by their busy time, so a workload may stall more than the machine. Regular rounds
    // check the workload itself.
    const stalls = sample.pressure("memory")?.some.avg10 ?? 0;
    const pressedMs = this.#pressedSince === undefined ? 0 : clock.monotonic() - this.#pressedSince;
    const crossed: string[] = [];
    if (memory && judgeFreeMemory(memory, settings).severity !== "none") crossed.push("free memory");
    if (stalls >= settings.workloadPressure) crossed.push("memory pressure");
    if (pressedMs >= settings.pressureDuration) crossed.push("duration of memory pressure");
    if (pressedMs >= 3 * settings.pressureDuration) crossed.push("duration for all pods");
    return crossed;
  }

  cooldownMs(): number {
    return this.#context.settings().cooldown;
  }

  async victims(
    pods: readonly ObservedPod[],
    severity: Severity,
    { topN }: { topN: number },
    signal: AbortSignal,
  ): Promise<Victims | undefined> {
    const { memories, readings, valueIn } = this.#context;
    const settings = this.#context.settings();
    const atRisk = candidatesFor(pods, severity);
    if (atRisk.length === 0) return undefined;
    const known = valueIn("podMemory", await memories.of(atRisk, signal));
    const nodes = valueIn("nodeMemory", await readings.nodeMemory(signal));
    // The node with the least free memory.
    const [node] = [...(nodes ?? [])].sort((a, b) => a.freeBytes - b.freeBytes || a.id - b.id);
    if (!known || !nodes || !node) return undefined;
    // Runtimes do not report usage by NUMA node. Total usage is used instead, because the whole machine is under
    // pressure.
    const onNode = (memory: PodMemory) =>
      bytesOnNode(memory, node, nodes) ?? (memory.nodeBytes ? undefined : memory.usageBytes);
    const ranked = memoryVictims(measuredPods(atRisk, known, onNode), node, settings);
    return { pods: ranked.slice(0, topN), gracePeriodSeconds: graceFor(severity, settings) };
  }

  async #detect(pods: readonly ObservedPod[], now: number, signal: AbortSignal): Promise<void> {
    const { readings, valueIn } = this.#context;
    const settings = this.#context.settings();
    const [memory, pressure] = await Promise.all([
      readings.memory(signal),
      this.#pressure(pods, settings, signal),
    ]);
    const state = valueIn("memory", memory);
    const free = state && judgeFreeMemory(state, settings);
    const { since, ...stalled } = judgePressure(this.#pressedSince, pressure, now, settings);
    this.#calm = free?.severity === "none" ? free : undefined;
    this.#pressedSince = since;
    this.#detectedAt = now;
    // The reported values are those of the more severe verdict.
    const severity = worseOf(stalled.severity, free?.severity ?? "none");
    this.#verdict = { ...(free && free.severity === severity ? free : stalled), severity };
  }

  async #pressure(
    pods: readonly ObservedPod[],
    { workloadCgroup }: SystemMemorySettings,
    signal: AbortSignal,
  ): Promise<WorkloadPressure | undefined> {
    const { readings, nodePods } = this.#context;
    const reading = await readings.pods(signal);
    const state = readingValue(reading);
    const workload =
      workloadCgroup === ""
        ? mapReading(
            reading,
            ({ groupPressure }) => groupPressure.get("burstable"),
            "the kubelet's cgroup for burstable pods has no pressure stall information",
          )
        : await readings.cgroupPressure(workloadCgroup, signal);
    // Not counted as missing, because kernels without PSI and machines with cgroup v1 never have it.
    if (!state || workload.state !== "read") return undefined;
    const stalls = activePods(nodePods?.() ?? pods)
      .filter(({ pod }) => pod.qosLevel === "shared_cores" || pod.qosLevel === "dedicated_cores")
      .map(({ pod }) => state.pods.get(pod.uid)?.memoryPressure?.some.avg10)
      .filter((avg10) => avg10 !== undefined);
    return { workload: workload.value.some.avg10, pods: stalls };
  }
}

function valuesOf({ observed, threshold, operator, unit }: MemoryVerdict): ThresholdValues {
  return { scope: SCOPE, thresholdValue: threshold, observedValue: observed, operator, unit };
}
