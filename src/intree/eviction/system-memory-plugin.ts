import type {
  EvictionSource,
  EvictPodsAnswer,
  ObservedPod,
  ThresholdAnswer,
  TopAnswer,
  TopQuestion,
} from "../../eviction/index.ts";
import { mapReading, readingValue } from "../../host/index.ts";
import { noPods, noTopPods, notMet } from "./answers.ts";
import { bytesOnNode, measurePods, shortestNode, usingAtLeast } from "./candidates.ts";
import { MissingReadings } from "./missing-readings.ts";
import { SYSTEM_MEMORY_PRESSURE } from "./names.ts";
import { activePods, type EvictionPluginParts } from "./parts.ts";
import { graceFor, podsAtRisk, worseOf } from "./severity.ts";
import {
  judgeFreeMemory,
  judgePressure,
  type MemoryVerdict,
  type PressedSince,
  type SystemMemorySettings,
  type WorkloadPressure,
} from "./system-memory.ts";
import { rankVictims } from "./victim-ranking.ts";

const SCOPE = "SystemMemory";

/** Evicts for the memory of the whole machine: too little is free, or the workload stands still for want of it. */
export function systemMemoryPressurePlugin(
  parts: EvictionPluginParts,
  settings: () => SystemMemorySettings,
): EvictionSource {
  return new SystemMemoryPressure(parts, settings);
}

class SystemMemoryPressure implements EvictionSource {
  readonly name = SYSTEM_MEMORY_PRESSURE;
  readonly #parts: EvictionPluginParts;
  readonly #settings: () => SystemMemorySettings;
  readonly #missing: MissingReadings;
  #verdict: MemoryVerdict | undefined;
  #detectedAt: number | undefined;
  #pressedSince: PressedSince;
  #namedAt: number | undefined;

  constructor(parts: EvictionPluginParts, settings: () => SystemMemorySettings) {
    this.#parts = parts;
    this.#settings = settings;
    this.#missing = new MissingReadings(this.name, parts.log, parts.metrics);
  }

  async getEvictPods(): Promise<EvictPodsAnswer> {
    return noPods;
  }

  async thresholdMet(pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    const now = this.#parts.clock.monotonic();
    const { detectionPeriodMs } = this.#settings();
    if (this.#detectedAt === undefined || now - this.#detectedAt >= detectionPeriodMs) {
      await this.#detect(pods, now, signal);
    }
    const verdict = this.#verdict;
    if (!verdict || verdict.severity === "none") return notMet;
    return {
      ...notMet,
      metType: "hard",
      scope: SCOPE,
      thresholdValue: verdict.threshold,
      observedValue: verdict.observed,
      operator: verdict.operator,
      condition: { target: "node", name: "MemoryPressure", effects: ["NoSchedule"], met: true },
    };
  }

  async getTopEvictionPods(
    pods: readonly ObservedPod[],
    { topN }: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer> {
    const { clock, memories, readings } = this.#parts;
    const settings = this.#settings();
    const severity = this.#verdict?.severity ?? "none";
    const atRisk = podsAtRisk(pods, severity);
    const isCooling = this.#namedAt !== undefined && clock.monotonic() - this.#namedAt < settings.cooldownMs;
    if (atRisk.length === 0 || isCooling) return noTopPods;

    const known = this.#missing.valueOf("podMemory", await memories.of(atRisk, signal));
    const nodes = this.#missing.valueOf("nodeMemory", await readings.nodeMemory(signal));
    const node = nodes && shortestNode(nodes);
    if (!known || !nodes || !node) return noTopPods;
    const measured = measurePods(
      atRisk,
      known,
      // A runtime does not tell nodes apart; the machine's memory is what is short.
      (memory) => bytesOnNode(memory, node, nodes) ?? (memory.nodeBytes ? undefined : memory.usageBytes),
    );
    const ranked = rankVictims(usingAtLeast(measured, node, settings.victimMinimumShare), settings.ranking);
    const victims = ranked.slice(0, topN);
    if (victims.length > 0) this.#namedAt = clock.monotonic();
    return { pods: victims.map(({ pod }) => pod), gracePeriodSeconds: graceFor(severity, settings) };
  }

  async #detect(pods: readonly ObservedPod[], now: number, signal: AbortSignal): Promise<void> {
    const settings = this.#settings();
    const [memory, pressure] = await Promise.all([
      this.#parts.readings.memory(signal),
      this.#pressure(pods, settings, signal),
    ]);
    const state = this.#missing.valueOf("memory", memory);
    const free = state && judgeFreeMemory(state, settings);
    const { since, ...stalled } = judgePressure(this.#pressedSince, pressure, now, settings);
    this.#pressedSince = since;
    this.#detectedAt = now;
    // The figures shown are those that led to the worse of the two.
    const severity = worseOf(stalled.severity, free?.severity ?? "none");
    this.#verdict = { ...(free && free.severity === severity ? free : stalled), severity };
  }

  async #pressure(
    pods: readonly ObservedPod[],
    { workloadCgroup }: SystemMemorySettings,
    signal: AbortSignal,
  ): Promise<WorkloadPressure | undefined> {
    const { readings, nodePods } = this.#parts;
    const reading = await readings.pods(signal);
    const state = readingValue(reading);
    const workload =
      workloadCgroup === null
        ? mapReading(
            reading,
            ({ groupPressure }) => groupPressure.get("burstable"),
            "the kubelet's group of burstable pods has no pressure",
          )
        : await readings.cgroupPressure(workloadCgroup, signal);
    // Not counted as missing: kernels without PSI and cgroup v1 have none for good.
    if (!state || workload.state !== "read") return undefined;
    const stalls = activePods(nodePods?.() ?? pods)
      .filter(({ pod }) => pod.qosLevel === "shared_cores" || pod.qosLevel === "dedicated_cores")
      .map(({ pod }) => state.pods.get(pod.uid)?.memoryPressure?.some.avg10)
      .filter((avg10) => avg10 !== undefined);
    return { workload: workload.value.some.avg10, pods: stalls };
  }
}
