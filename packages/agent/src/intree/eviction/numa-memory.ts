import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { ObservedPod } from "../../eviction/index.ts";
import type { HostSample, NodeMemory } from "../../host/index.ts";
import type { PodMemory } from "../../pod-usage/index.ts";
import type {
  InTreePlugin,
  Observation,
  PluginContext,
  PressureRule,
  ThresholdValues,
  Victims,
} from "./in-tree-plugin.ts";
import { RegularRounds } from "./regular-rounds.ts";
import {
  bytesOnNode,
  candidatesFor,
  graceFor,
  measuredPods,
  memoryVictims,
  type Severity,
} from "./victims.ts";

export type NumaMemorySettings = EvictionSettings["numaMemory"];

// After this many samples, a sample far below the watermark counts twice.
const COUNTS_BEFORE_DOUBLE = 2;

/** Watermarks of a NUMA node, bytes. */
export interface Watermarks {
  minBytes: number;
  lowBytes: number;
  /** Below this, free memory is far below the low watermark. */
  gapBytes: number;
  /** Whether inactive page cache is short, so that the kernel can't reclaim memory from it. */
  isCacheShort: boolean;
}

/** Returns the kernel's watermarks plus the configured gaps, increased if inactive page cache is short. */
export function watermarksOf(node: NodeMemory, settings: NumaMemorySettings): Watermarks {
  const largest = settings.largestReserveShare * node.totalBytes;
  const guard = Math.min(settings.lowGuard, largest);
  const gapBytes = Math.min(settings.minGap, largest);
  const reserve = Math.min(settings.lowReserve, largest);
  const minBytes = node.minBytes + gapBytes;
  const lowBytes = node.lowBytes + guard;
  const isCacheShort = node.inactiveFileBytes < Math.max(reserve, lowBytes);
  const raised = isCacheShort ? Math.max(reserve, lowBytes + gapBytes) : lowBytes;
  return { minBytes, lowBytes: raised, gapBytes, isCacheShort };
}

/** The severity for a node, and its sample count. */
export interface NodeVerdict {
  count: number;
  severity: Severity;
}

/**
 * Evaluates one sample of a node. Below the min watermark, reclaimed pods are candidates immediately. Other pods are
 * candidates only if page cache is also short, because a node full of page cache always has little free memory. Below
 * the low watermark, samples are counted.
 */
export function judgeNode(
  before: number,
  freeBytes: number,
  { minBytes, lowBytes, gapBytes, isCacheShort }: Watermarks,
  settings: NumaMemorySettings,
): NodeVerdict {
  const { reclaimedCounts } = settings;
  const dangerCounts = Math.min(settings.dangerCounts, settings.allCounts);
  const allCounts = Math.max(settings.allCounts, reclaimedCounts + 1);
  // While the kernel can reclaim page cache, only reclaimed pods are candidates, regardless of the settings.
  const worst: Severity = isCacheShort ? "all" : "reclaimed";
  if (freeBytes < minBytes) {
    const soon = Math.max(0, allCounts - dangerCounts);
    const count = before < soon ? soon : Math.min(isCacheShort ? before + 1 : soon, allCounts);
    return { count, severity: count >= allCounts ? worst : "reclaimed" };
  }
  if (freeBytes < lowBytes) {
    const isFarBelow =
      freeBytes < (minBytes + lowBytes) / 2 || (lowBytes > gapBytes && freeBytes < lowBytes - gapBytes);
    const step = isFarBelow && before + 1 > COUNTS_BEFORE_DOUBLE ? 2 : 1;
    const count = Math.min(before + step, allCounts);
    if (count >= allCounts) return { count, severity: worst };
    return { count, severity: count > reclaimedCounts ? "reclaimed" : "none" };
  }
  // The count decreases by one for each sample, starting from at most reclaimedCounts.
  return { count: Math.min(Math.max(0, before - 1), reclaimedCounts), severity: "none" };
}

/**
 * Evaluates a sample of a round out of turn. It is not counted: it detects free memory below the min watermark, and the
 * end of pressure.
 */
function judgeEarly(
  last: NodeVerdict,
  freeBytes: number,
  watermarks: Watermarks,
  settings: NumaMemorySettings,
): NodeVerdict {
  const { minBytes, lowBytes } = watermarks;
  if (freeBytes >= Math.max(minBytes, lowBytes)) return { ...last, severity: "none" };
  if (last.severity !== "none" || freeBytes >= minBytes) return last;
  const { count, severity } = judgeNode(0, freeBytes, watermarks, settings);
  return { count: Math.max(last.count, count), severity };
}

const SCOPE = "NumaMemory";
const NODES_SAMPLE_MS = 1_000;
const STILL_SHARE = 0.002;

/**
 * Evicts pods under memory pressure of a single NUMA node. Based on katalyst-core
 * pkg/agent/evictionmanager/plugin/memory/numa_pressure.go.
 */
export const numaMemoryPressure: InTreePlugin<NumaMemorySettings> = {
  name: "numa-memory-pressure-eviction-plugin",
  pressure: (context) => new NumaMemoryRule(context),
};

/** A NUMA node under pressure. */
interface PressedNode {
  node: NodeMemory;
  severity: Severity;
  lowBytes: number;
}

/** The NUMA nodes of the machine, and those under pressure, worst first. */
interface NumaPressure {
  nodes: readonly NodeMemory[];
  pressed: readonly PressedNode[];
}

class NumaMemoryRule implements PressureRule<NumaPressure> {
  readonly #context: PluginContext<NumaMemorySettings>;
  /** Counts of samples below the low watermark, by node. */
  #counts = new Map<number, number>();
  #pressed: readonly PressedNode[] = [];
  /** Time of the last evaluated reading. */
  #lookedAt: number | undefined;
  /** The last sample of nodes: monotonic time, free bytes of the machine, and thresholds crossed. */
  #sampled = { at: Number.NEGATIVE_INFINITY, free: 0, crossed: [] as readonly string[] };
  readonly #rounds: RegularRounds;

  constructor(context: PluginContext<NumaMemorySettings>) {
    this.#context = context;
    this.#rounds = new RegularRounds(context);
  }

  async observe(pods: readonly ObservedPod[], signal: AbortSignal): Promise<Observation<NumaPressure>> {
    const { readings, valueIn } = this.#context;
    const reading = await readings.nodeMemory(signal);
    const nodes = valueIn("nodeMemory", reading);
    if (!nodes) {
      // A failed reading does not change the counts.
      this.#pressed = [];
      return {};
    }
    // A cached reading is counted only once.
    if (this.#lookedAt !== reading.at) this.#judge(nodes);
    this.#lookedAt = reading.at;
    const pressure = this.#pressed.length > 0 ? { nodes, pressed: this.#pressed } : undefined;
    // A node full of page cache always has little free memory. This is not reported if there are no candidate pods.
    const worst = this.#pressed.find(({ severity }) => candidatesFor(pods, severity).length > 0);
    if (!worst) return { values: this.#tightest(nodes), pressure };
    return { values: freeMemory(worst), metType: "hard", pressure };
  }

  /**
   * Returns a name for each node whose free memory is below the min watermark. Pods are evicted for it immediately.
   * Samples between rounds do not change the counts.
   */
  crossed(sample: HostSample): readonly string[] {
    const { settings, clock } = this.#context;
    const now = clock.monotonic();
    const { freeBytes = 0, totalBytes = 0 } = sample.memory() ?? {};
    const { at, free, crossed } = this.#sampled;
    // Readings of nodes are expensive: they are sampled once a second while the machine's free memory hardly changes.
    const isStill = Math.abs(freeBytes - free) < STILL_SHARE * totalBytes;
    if (isStill && now - at < NODES_SAMPLE_MS) return crossed;
    const inDanger = (sample.nodeMemory() ?? []).filter(
      (node) => node.freeBytes < watermarksOf(node, settings()).minBytes,
    );
    const names = inDanger.map(({ id }) => `free memory of NUMA node ${id}`);
    this.#sampled = { at: now, free: freeBytes, crossed: names };
    return names;
  }

  /** Returns the top pods of the worst node with candidates, as many as requested. */
  async victims(
    pods: readonly ObservedPod[],
    { nodes, pressed }: NumaPressure,
    { topN }: { topN: number },
    signal: AbortSignal,
  ): Promise<Victims | undefined> {
    const { memories, valueIn } = this.#context;
    const settings = this.#context.settings();
    const known = valueIn("podMemory", await memories.of(pods, signal));
    if (!known) return undefined;
    for (const { node, severity } of pressed) {
      const candidates = candidatesFor(pods, severity);
      const onNode = (memory: PodMemory) => bytesOnNode(memory, node, nodes);
      const ranked = memoryVictims(measuredPods(candidates, known, onNode), node, settings);
      if (ranked.length > 0)
        return { pods: ranked.slice(0, topN), gracePeriodSeconds: graceFor(severity, settings) };
    }
    return undefined;
  }

  // Returns the values of the node with the least free memory above its low watermark.
  #tightest(nodes: readonly NodeMemory[]): ThresholdValues | undefined {
    const settings = this.#context.settings();
    const [tightest] = nodes
      .map((node) => ({ node, lowBytes: watermarksOf(node, settings).lowBytes }))
      .sort((a, b) => headroom(a) - headroom(b));
    return tightest && freeMemory(tightest);
  }

  #judge(nodes: readonly NodeMemory[]): void {
    const settings = this.#context.settings();
    const isEarly = !this.#rounds.take();
    const last = new Map(this.#pressed.map(({ node, severity }) => [node.id, severity]));
    const counts = new Map<number, number>();
    const pressed: PressedNode[] = [];
    for (const node of nodes) {
      const watermarks = watermarksOf(node, settings);
      const before = { count: this.#counts.get(node.id) ?? 0, severity: last.get(node.id) ?? "none" };
      const { count, severity } = isEarly
        ? judgeEarly(before, node.freeBytes, watermarks, settings)
        : judgeNode(before.count, node.freeBytes, watermarks, settings);
      counts.set(node.id, count);
      if (severity === "none") continue;
      pressed.push({ node, severity, lowBytes: Math.max(watermarks.lowBytes, watermarks.minBytes) });
    }
    this.#counts = counts;
    this.#pressed = pressed.sort((a, b) => compareNodes(a, b));
  }
}

type MeasuredNode = Pick<PressedNode, "node" | "lowBytes">;

function freeMemory({ node, lowBytes }: MeasuredNode): ThresholdValues {
  const values = { thresholdValue: lowBytes, observedValue: node.freeBytes };
  return { scope: SCOPE, ...values, operator: "lessThan", unit: "bytes" };
}

function headroom({ node, lowBytes }: MeasuredNode): number {
  return node.freeBytes - lowBytes;
}

// Nodes on which all pods are candidates come first, then the node furthest below its watermark.
function compareNodes(a: PressedNode, b: PressedNode): number {
  if (a.severity !== b.severity) return a.severity === "all" ? -1 : 1;
  return headroom(a) - headroom(b) || a.node.id - b.node.id;
}
