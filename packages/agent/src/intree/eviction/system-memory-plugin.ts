import {
  noTopPods,
  notMet,
  type ObservedPod,
  type ThresholdAnswer,
  type TopAnswer,
  type TopQuestion,
} from "../../eviction/index.ts";
import { type HostSample, mapReading, readingValue } from "../../host/index.ts";
import { bytesOnNode, measurePods, shortestNode, usingAtLeast } from "./candidates.ts";
import type { InTreeAnswers, InTreePlugin, InTreePluginContext } from "./in-tree-plugin.ts";
import { activePods } from "./parts.ts";
import { candidatesFor, graceFor, worseOf } from "./severity.ts";
import {
  judgeFreeMemory,
  judgePressure,
  type MemoryVerdict,
  type PressedSince,
  type SystemMemorySettings,
  type WorkloadPressure,
} from "./system-memory.ts";
import { VictimCooldown } from "./victim-cooldown.ts";
import { rankVictims } from "./victim-ranking.ts";

const SCOPE = "SystemMemory";

/**
 * Evicts pods under memory pressure of the whole machine: too little free memory, or PSI stalls of the workload. After
 * katalyst-core pkg/agent/evictionmanager/plugin/memory/system_pressure.go.
 */
export const systemMemoryPressure: InTreePlugin<SystemMemorySettings> = {
  name: "system-memory-pressure-eviction-plugin",
  answers: (context) => new SystemMemoryPressure(context),
};

class SystemMemoryPressure implements InTreeAnswers {
  readonly #context: InTreePluginContext<SystemMemorySettings>;
  #verdict: MemoryVerdict | undefined;
  /** Free memory while it is not short, for the record; undefined while it is, or is not known. */
  #calm: MemoryVerdict | undefined;
  #detectedAt: number | undefined;
  #pressedSince: PressedSince;
  readonly #cooldown: VictimCooldown;

  constructor(context: InTreePluginContext<SystemMemorySettings>) {
    this.#context = context;
    this.#cooldown = new VictimCooldown(context.parts);
  }

  async thresholdMet(pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    const now = this.#context.parts.clock.monotonic();
    const { detectionPeriodMs } = this.#context.settings();
    const isCalm = !this.#verdict || this.#verdict.severity === "none";
    if (isCalm || this.#detectedAt === undefined || now - this.#detectedAt >= detectionPeriodMs) {
      await this.#detect(pods, now, signal);
    }
    const verdict = this.#verdict;
    if (!verdict || verdict.severity === "none") return this.#calm ? answerOf(this.#calm) : notMet;
    return {
      ...answerOf(verdict),
      // Pressure without candidate pods only keeps its condition; a met threshold would be recorded in each round.
      metType: candidatesFor(pods, verdict.severity).length > 0 ? "hard" : "none",
      condition: { target: "node", name: "MemoryPressure", effects: ["NoSchedule"], met: true },
    };
  }

  crossed(sample: HostSample): string[] {
    const { clock } = this.#context.parts;
    const settings = this.#context.settings();
    const memory = sample.memory();
    // The machine stalls at least as much as its workload, so below this the workload need not be checked.
    const stalls = sample.pressure("memory")?.some.avg10 ?? 0;
    const pressedMs = this.#pressedSince === undefined ? 0 : clock.monotonic() - this.#pressedSince;
    const crossed: string[] = [];
    if (memory && judgeFreeMemory(memory, settings).severity !== "none") crossed.push("free memory");
    if (stalls >= settings.workloadPressurePercent) crossed.push("memory pressure");
    if (pressedMs >= settings.pressureDurationMs) crossed.push("duration of memory pressure");
    if (pressedMs >= 3 * settings.pressureDurationMs) crossed.push("duration for all pods");
    return crossed;
  }

  async getTopEvictionPods(
    pods: readonly ObservedPod[],
    { topN }: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer> {
    const { parts, missing } = this.#context;
    const { memories, readings } = parts;
    const settings = this.#context.settings();
    const severity = this.#verdict?.severity ?? "none";
    const atRisk = candidatesFor(pods, severity);
    if (atRisk.length === 0 || this.#cooldown.holds(settings.cooldownMs)) return noTopPods;

    const known = missing.valueOf("podMemory", await memories.of(atRisk, signal));
    const nodes = missing.valueOf("nodeMemory", await readings.nodeMemory(signal));
    const node = nodes && shortestNode(nodes);
    if (!known || !nodes || !node) return noTopPods;
    const measured = measurePods(
      atRisk,
      known,
      // Runtimes do not report usage by NUMA node; the whole machine is under pressure.
      (memory) => bytesOnNode(memory, node, nodes) ?? (memory.nodeBytes ? undefined : memory.usageBytes),
    );
    const ranked = rankVictims(usingAtLeast(measured, node, settings.victimMinimumShare), settings.ranking);
    const victims = ranked.slice(0, topN).map(({ pod }) => pod);
    this.#cooldown.start(victims);
    return { pods: victims, gracePeriodSeconds: graceFor(severity, settings) };
  }

  async #detect(pods: readonly ObservedPod[], now: number, signal: AbortSignal): Promise<void> {
    const { parts, missing } = this.#context;
    const settings = this.#context.settings();
    const [memory, pressure] = await Promise.all([
      parts.readings.memory(signal),
      this.#pressure(pods, settings, signal),
    ]);
    const state = missing.valueOf("memory", memory);
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
    const { readings, nodePods } = this.#context.parts;
    const reading = await readings.pods(signal);
    const state = readingValue(reading);
    const workload =
      workloadCgroup === null
        ? mapReading(
            reading,
            ({ groupPressure }) => groupPressure.get("burstable"),
            "the kubelet's cgroup for burstable pods has no pressure stall information",
          )
        : await readings.cgroupPressure(workloadCgroup, signal);
    // Not counted as missing, since kernels without PSI and cgroup v1 never have it.
    if (!state || workload.state !== "read") return undefined;
    const stalls = activePods(nodePods?.() ?? pods)
      .filter(({ pod }) => pod.qosLevel === "shared_cores" || pod.qosLevel === "dedicated_cores")
      .map(({ pod }) => state.pods.get(pod.uid)?.memoryPressure?.some.avg10)
      .filter((avg10) => avg10 !== undefined);
    return { workload: workload.value.some.avg10, pods: stalls };
  }
}

// The values of a verdict; not met.
function answerOf({ observed, threshold, operator, unit }: MemoryVerdict): ThresholdAnswer {
  return { ...notMet, scope: SCOPE, thresholdValue: threshold, observedValue: observed, operator, unit };
}
