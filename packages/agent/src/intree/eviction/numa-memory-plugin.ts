import {
  noTopPods,
  notMet,
  type ObservedPod,
  type ThresholdAnswer,
  type TopAnswer,
  type TopQuestion,
} from "../../eviction/index.ts";
import type { HostSample, NodeMemory } from "../../host/index.ts";
import { bytesOnNode, measurePods, usingAtLeast } from "./candidates.ts";
import type { InTreeAnswers, InTreePlugin, InTreePluginContext } from "./in-tree-plugin.ts";
import { judgeNode, type NumaMemorySettings, watermarksOf } from "./numa-memory.ts";
import { RegularRounds } from "./regular-rounds.ts";
import { candidatesFor, graceFor, type Severity } from "./severity.ts";
import { rankVictims } from "./victim-ranking.ts";

const SCOPE = "NumaMemory";
const NODES_SAMPLE_MS = 1_000;
const STILL_SHARE = 0.002;

/**
 * Evicts pods under memory pressure of a single NUMA node. After katalyst-core
 * pkg/agent/evictionmanager/plugin/memory/numa_pressure.go.
 */
export const numaMemoryPressure: InTreePlugin<NumaMemorySettings> = {
  name: "numa-memory-pressure-eviction-plugin",
  answers: (context) => new NumaMemoryPressure(context),
};

/** A NUMA node under pressure. */
interface PressedNode {
  node: NodeMemory;
  severity: Severity;
  lowBytes: number;
}

class NumaMemoryPressure implements InTreeAnswers {
  readonly #context: InTreePluginContext<NumaMemorySettings>;
  /** Counts of samples below the low watermark, by node. */
  #counts = new Map<number, number>();
  #nodes: readonly NodeMemory[] = [];
  /** Nodes under pressure, the worst first. */
  #pressed: readonly PressedNode[] = [];
  /** Time of the last evaluated reading. */
  #lookedAt: number | undefined;
  /** The last sample of nodes: monotonic time, free bytes of the machine, and thresholds crossed. */
  #sampled: { at: number; free: number; crossed: readonly string[] } = {
    at: Number.NEGATIVE_INFINITY,
    free: 0,
    crossed: [],
  };
  readonly #rounds: RegularRounds;

  constructor(context: InTreePluginContext<NumaMemorySettings>) {
    this.#context = context;
    this.#rounds = new RegularRounds(context.parts);
  }

  async thresholdMet(pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    const { parts, missing } = this.#context;
    const reading = await parts.readings.nodeMemory(signal);
    const nodes = missing.valueOf("nodeMemory", reading);
    if (!nodes) {
      // A failed reading does not change the counts.
      this.#pressed = [];
      return notMet;
    }
    // A cached reading is counted only once.
    if (this.#lookedAt !== reading.at) this.#judge(nodes);
    this.#lookedAt = reading.at;
    // A node full of page cache permanently has little free memory. Without candidate pods this is not reported.
    const worst = this.#pressed.find(({ severity }) => candidatesFor(pods, severity).length > 0);
    if (!worst) return this.#calm(nodes);
    return {
      ...notMet,
      metType: "hard",
      scope: SCOPE,
      thresholdValue: worst.lowBytes,
      observedValue: worst.node.freeBytes,
      operator: "lessThan",
      unit: "bytes",
    };
  }

  /** Nodes below the min watermark, for which pods are evicted immediately; counts only change in rounds. */
  crossed(sample: HostSample): readonly string[] {
    const settings = this.#context.settings();
    const now = this.#context.parts.clock.monotonic();
    const { freeBytes = 0, totalBytes = 0 } = sample.memory() ?? {};
    const { at, free, crossed } = this.#sampled;
    // Readings of nodes are expensive, so they are sampled once a second while the machine's free memory hardly changes.
    const isStill = Math.abs(freeBytes - free) < STILL_SHARE * totalBytes;
    if (isStill && now - at < NODES_SAMPLE_MS) return crossed;
    const inDanger = (sample.nodeMemory() ?? []).filter(
      (node) => node.freeBytes < watermarksOf(node, settings).minBytes,
    );
    const names = inDanger.map(({ id }) => `free memory of NUMA node ${id}`);
    this.#sampled = { at: now, free: freeBytes, crossed: names };
    return names;
  }

  /** The top pods of the worst node that has candidates, as many as requested. */
  async getTopEvictionPods(
    pods: readonly ObservedPod[],
    { topN }: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer> {
    const { parts, missing } = this.#context;
    const settings = this.#context.settings();
    if (this.#pressed.length === 0) return noTopPods;
    const known = missing.valueOf("podMemory", await parts.memories.of(pods, signal));
    if (!known) return noTopPods;
    for (const { node, severity } of this.#pressed) {
      const measured = measurePods(candidatesFor(pods, severity), known, (memory) =>
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

  // The node with the least free memory above its low watermark, not met.
  #calm(nodes: readonly NodeMemory[]): ThresholdAnswer {
    const settings = this.#context.settings();
    const [tightest] = nodes
      .map((node) => ({ node, lowBytes: watermarksOf(node, settings).lowBytes }))
      .sort((a, b) => a.node.freeBytes - a.lowBytes - (b.node.freeBytes - b.lowBytes));
    if (!tightest) return notMet;
    const values = { thresholdValue: tightest.lowBytes, observedValue: tightest.node.freeBytes };
    return { ...notMet, scope: SCOPE, ...values, operator: "lessThan", unit: "bytes" };
  }

  #judge(nodes: readonly NodeMemory[]): void {
    const settings = this.#context.settings();
    // A sample of a round out of turn only detects free memory below the min watermark; it is not counted.
    const isEarly = !this.#rounds.take();
    const last = new Map(this.#pressed.map(({ node, severity }) => [node.id, severity]));
    const counts = new Map<number, number>();
    const pressed: PressedNode[] = [];
    for (const node of nodes) {
      const watermarks = watermarksOf(node, settings);
      const before = this.#counts.get(node.id) ?? 0;
      const { count, severity } =
        isEarly && (last.has(node.id) || node.freeBytes >= watermarks.minBytes)
          ? { count: before, severity: last.get(node.id) ?? "none" }
          : judgeNode(before, node.freeBytes, watermarks, settings);
      counts.set(node.id, count);
      if (severity === "none") continue;
      pressed.push({ node, severity, lowBytes: Math.max(watermarks.lowBytes, watermarks.minBytes) });
    }
    this.#counts = counts;
    this.#nodes = nodes;
    this.#pressed = pressed.sort((a, b) => compareNodes(a, b));
  }
}

// Nodes where all pods are candidates come first, then the node furthest below its watermark.
function compareNodes(a: PressedNode, b: PressedNode): number {
  if (a.severity !== b.severity) return a.severity === "all" ? -1 : 1;
  return a.node.freeBytes - a.lowBytes - (b.node.freeBytes - b.lowBytes) || a.node.id - b.node.id;
}
