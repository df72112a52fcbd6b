import type {
  EvictionSource,
  EvictPodsAnswer,
  ObservedPod,
  ThresholdAnswer,
  TopAnswer,
  TopQuestion,
} from "../../eviction/index.ts";
import type { NodeMemory } from "../../host/index.ts";
import { noPods, noTopPods, notMet } from "./answers.ts";
import { bytesOnNode, measurePods, usingAtLeast } from "./candidates.ts";
import { MissingReadings } from "./missing-readings.ts";
import { NUMA_MEMORY_PRESSURE } from "./names.ts";
import { judgeNode, type NumaMemorySettings, watermarksOf } from "./numa-memory.ts";
import type { EvictionPluginParts } from "./parts.ts";
import { graceFor, podsAtRisk, type Severity } from "./severity.ts";
import { rankVictims } from "./victim-ranking.ts";

const SCOPE = "NumaMemory";

/** Evicts for the memory of single NUMA nodes, of which one may be short while the machine as a whole is not. */
export function numaMemoryPressurePlugin(
  parts: EvictionPluginParts,
  settings: () => NumaMemorySettings,
): EvictionSource {
  return new NumaMemoryPressure(parts, settings);
}

/** A node under pressure. */
interface PressedNode {
  node: NodeMemory;
  severity: Severity;
  lowBytes: number;
}

class NumaMemoryPressure implements EvictionSource {
  readonly name = NUMA_MEMORY_PRESSURE;
  readonly #parts: EvictionPluginParts;
  readonly #settings: () => NumaMemorySettings;
  readonly #missing: MissingReadings;
  /** By node. */
  #counts = new Map<number, number>();
  #nodes: readonly NodeMemory[] = [];
  /** The worst first. */
  #pressed: readonly PressedNode[] = [];
  #lookedAt: number | undefined;

  constructor(parts: EvictionPluginParts, settings: () => NumaMemorySettings) {
    this.#parts = parts;
    this.#settings = settings;
    this.#missing = new MissingReadings(this.name, parts.log, parts.metrics);
  }

  async getEvictPods(): Promise<EvictPodsAnswer> {
    return noPods;
  }

  async thresholdMet(pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    const reading = await this.#parts.readings.nodeMemory(signal);
    const nodes = this.#missing.valueOf("nodeMemory", reading);
    if (!nodes) {
      // The counts stay: a look that failed says neither that it got better nor worse.
      this.#pressed = [];
      return notMet;
    }
    // One look is counted once, however often it is handed out.
    if (this.#lookedAt !== reading.at) this.#judge(nodes);
    this.#lookedAt = reading.at;
    // A node full of page cache has little free memory for good. Where nobody is at risk for it, that is no news.
    const worst = this.#pressed.find(({ severity }) => podsAtRisk(pods, severity).length > 0);
    if (!worst) return notMet;
    return {
      ...notMet,
      metType: "hard",
      scope: SCOPE,
      thresholdValue: worst.lowBytes,
      observedValue: worst.node.freeBytes,
      operator: "lessThan",
    };
  }

  /** From the worst node that has somebody to give, so many as asked for. */
  async getTopEvictionPods(
    pods: readonly ObservedPod[],
    { topN }: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer> {
    const settings = this.#settings();
    if (this.#pressed.length === 0) return noTopPods;
    const known = this.#missing.valueOf("podMemory", await this.#parts.memories.of(pods, signal));
    if (!known) return noTopPods;
    for (const { node, severity } of this.#pressed) {
      const measured = measurePods(podsAtRisk(pods, severity), known, (memory) =>
        bytesOnNode(memory, node, this.#nodes),
      );
      const ranked = rankVictims(usingAtLeast(measured, node, settings.victimMinimumShare), settings.ranking);
      if (ranked.length === 0) continue;
      return {
        pods: ranked.slice(0, topN).map(({ pod }) => pod),
        gracePeriodSeconds: graceFor(severity, settings),
      };
    }
    return noTopPods;
  }

  #judge(nodes: readonly NodeMemory[]): void {
    const settings = this.#settings();
    const counts = new Map<number, number>();
    const pressed: PressedNode[] = [];
    for (const node of nodes) {
      const watermarks = watermarksOf(node, settings);
      const { count, severity } = judgeNode(
        this.#counts.get(node.id) ?? 0,
        node.freeBytes,
        watermarks,
        settings,
      );
      counts.set(node.id, count);
      if (severity === "none") continue;
      pressed.push({ node, severity, lowBytes: Math.max(watermarks.lowBytes, watermarks.minBytes) });
    }
    this.#counts = counts;
    this.#nodes = nodes;
    this.#pressed = pressed.sort((a, b) => compareNodes(a, b));
  }
}

// Anybody's turn before that of reclaimed pods alone, then the one furthest below its watermark.
function compareNodes(a: PressedNode, b: PressedNode): number {
  if (a.severity !== b.severity) return a.severity === "all" ? -1 : 1;
  return a.node.freeBytes - a.lowBytes - (b.node.freeBytes - b.lowBytes) || a.node.id - b.node.id;
}
