import { nodesText, sameTaint, sameTaints } from "./canonical.ts";
import type { CheckedDevice, CheckedPool, StoredSlice } from "./checked.ts";
import { type Group, layOut } from "./layout.ts";
import { limits } from "./limits.ts";
import type { CounterSet, Device, DeviceTaint, PoolNodes, SliceSpec } from "./model.ts";
import { firstCounterIndex, indexOfName, nameSuffix, sliceName } from "./slice-names.ts";

export interface PlanInput {
  driver: string;
  nodeName: string;
  /** Names unique, as `checkPools` gives them. */
  pools: readonly CheckedPool[];
  /** Every slice of the driver that this node published, and no other. */
  stored: readonly StoredSlice[];
}

/** What is to be written. Deletions come first, so that nothing that is gone is given out; then updates, then creations. */
export interface SlicePlan {
  deletes: StoredSlice[];
  updates: { stored: StoredSlice; spec: SliceSpec }[];
  creates: { name: string; spec: SliceSpec }[];
}

/**
 * Says what to write so that the slices become what the driver wants, from what the API server has and nothing else.
 *
 * A pool's generation rises whenever a reader that sees some of the writes and not yet the others could take a mix for
 * the truth; all its slices are written then. It stays where there is no such mix: when one slice changes in place,
 * when only taints change (each speaks of its own device alone), and when slices are missing or of an older generation
 * and the others are right already, for readers wait until all are there.
 */
export function planSlices({ driver, nodeName, pools, stored }: PlanInput): SlicePlan {
  const plan: SlicePlan = { deletes: [], updates: [], creates: [] };
  const byPool = Map.groupBy(stored, (slice) => slice.pool.name);
  for (const pool of pools) {
    planPool(plan, driver, nodeName, pool, byPool.get(pool.name) ?? []);
    byPool.delete(pool.name);
  }
  for (const slices of byPool.values()) plan.deletes.push(...slices);
  return plan;
}

/** One slice as it should be; `stored` is what it replaces. */
interface Target {
  stored: StoredSlice | undefined;
  name: string;
  devices?: CheckedDevice[];
  counters?: CheckedPool["counterSets"];
}

type Difference = "none" | "taints" | "more";

function planPool(
  plan: SlicePlan,
  driver: string,
  nodeName: string,
  pool: CheckedPool,
  stored: StoredSlice[],
): void {
  const nodes = specNodes(pool.nodes, nodeName);
  const nodesKey = nodesText(nodes);
  // nodeName is immutable: slices with another one can't become slices of this pool.
  const usable = stored.filter((slice) => slice.nodeName === nodes.nodeName);
  const targets = targetsOf(
    pool,
    usable,
    stored,
    nameSuffix(driver, nodeName, `${nodes.nodeName ? "node" : ""}/${pool.name}`),
  );
  const kept = new Set(targets.map((target) => target.stored));
  const count = targets.length;
  const differences = targets.map((target) => differenceOf(target, nodesKey, count));

  const generation = Math.max(0, ...stored.map((slice) => slice.pool.generation));
  const isVisible = (slice: StoredSlice) => slice.pool.generation === generation;
  const rises = stored.length === 0 || wouldMix(targets, differences, stored, kept, isVisible);
  const next = rises ? generation + 1 : generation;

  plan.deletes.push(...stored.filter((slice) => !kept.has(slice)));
  const taintsBefore = memoize(() => taintsByDevice(stored));
  for (const [at, target] of targets.entries()) {
    if (!rises && target.stored && isVisible(target.stored) && differences[at] === "none") continue;
    const spec: SliceSpec = {
      driver,
      pool: { name: pool.name, generation: next, resourceSliceCount: count },
      ...nodes,
      ...contentOf(target, taintsBefore),
    };
    if (target.stored) plan.updates.push({ stored: target.stored, spec });
    else plan.creates.push({ name: target.name, spec });
  }
}

// Whether writes at the generation that readers use now could show them something that never was. Slices of older
// generations are as good as absent.
function wouldMix(
  targets: Target[],
  differences: Difference[],
  stored: StoredSlice[],
  kept: ReadonlySet<StoredSlice | undefined>,
  isVisible: (slice: StoredSlice) => boolean,
): boolean {
  const changed = differences.filter((difference, at) => {
    const slice = targets[at]!.stored;
    return slice && isVisible(slice) && difference !== "none";
  });
  const adds = targets.some((target) => !target.stored || !isVisible(target.stored));
  const removes = stored.some((slice) => isVisible(slice) && !kept.has(slice));
  if (changed.length === 0) return adds && removes;
  if (adds || removes) return true;
  return changed.length > 1 && changed.some((difference) => difference !== "taints");
}

function targetsOf(pool: CheckedPool, usable: StoredSlice[], all: StoredSlice[], suffix: string): Target[] {
  const taken = new Set(all.map(({ name }) => name));
  const sorted = usable.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const deviceSlots = sorted.filter((slice) => slice.counterSets.length === 0);
  const counterSlots = sorted.filter((slice) => slice.counterSets.length > 0);

  const targets: Target[] = [];
  for (let at = 0; at * limits.counterSetsPerSlice < pool.counterSets.length; at++) {
    const from = at * limits.counterSetsPerSlice;
    targets.push({
      stored: counterSlots[at],
      name: freeName(firstCounterIndex + at, suffix, taken),
      counters: pool.counterSets.slice(from, from + limits.counterSetsPerSlice),
    });
  }
  // A pool of counters alone needs no slice of devices; an empty pool has one, for it tells that the driver is there.
  if (pool.devices.length === 0 && targets.length > 0) return targets;
  const groups = layOut(
    pool.devices,
    deviceSlots.map(({ name, devices }) => ({
      index: indexOfName(name),
      devices: devices.map((device) => device.name),
    })),
    {
      missing: missingSlots(all, pool),
      endIndex: firstCounterIndex,
      isFree: (index) => !taken.has(sliceName(index, suffix)),
    },
  );
  return targets.concat(groups.map((group) => deviceTarget(group, deviceSlots, suffix)));
}

function deviceTarget({ slot, index, devices }: Group, slots: StoredSlice[], suffix: string): Target {
  const stored = slot === undefined ? undefined : slots[slot];
  return { stored, name: stored?.name ?? sliceName(index!, suffix), devices };
}

function freeName(from: number, suffix: string, taken: Set<string>): string {
  let index = from;
  while (taken.has(sliceName(index, suffix))) index++;
  const name = sliceName(index, suffix);
  taken.add(name);
  return name;
}

// How many slices with devices the newest ones say that there should be, beyond those that are there.
function missingSlots(stored: StoredSlice[], pool: CheckedPool): number {
  const newest = stored.reduce<StoredSlice | undefined>(
    (best, slice) => (best && best.pool.generation >= slice.pool.generation ? best : slice),
    undefined,
  );
  if (!newest) return 0;
  const counters = Math.ceil(pool.counterSets.length / limits.counterSetsPerSlice);
  const present = stored.filter(({ counterSets }) => counterSets.length === 0).length;
  return Math.max(0, newest.pool.resourceSliceCount - counters - present);
}

function differenceOf(target: Target, nodesKey: string, count: number): Difference {
  const { stored } = target;
  if (!stored) return "more";
  if (stored.pool.resourceSliceCount !== count || stored.nodes !== nodesKey) return "more";
  const counters = target.counters ?? [];
  const devices = target.devices ?? [];
  if (stored.counterSets.length !== counters.length || stored.devices.length !== devices.length)
    return "more";
  if (counters.some(({ fingerprint }, at) => fingerprint !== stored.counterSets[at])) return "more";
  let difference: Difference = "none";
  for (let at = 0; at < devices.length; at++) {
    const { device, fingerprint } = devices[at]!;
    const other = stored.devices[at]!;
    if (fingerprint !== other.fingerprint) return "more";
    if (!sameTaints(device.taints, other.taints)) difference = "taints";
  }
  return difference;
}

function contentOf(
  { devices, counters }: Target,
  taintsBefore: () => ReadonlyMap<string, DeviceTaint[]>,
): { devices: Device[] } | { sharedCounters: CounterSet[] } {
  if (counters) return { sharedCounters: counters.map(({ set }) => set) };
  return { devices: (devices ?? []).map(({ device }) => withTaintTimes(device, taintsBefore)) };
}

// A taint that stays keeps the time that the API server gave it; evictions are counted from it.
function withTaintTimes(device: Device, taintsBefore: () => ReadonlyMap<string, DeviceTaint[]>): Device {
  if (!device.taints?.length) return device;
  const before = taintsBefore().get(device.name);
  if (!before) return device;
  const taints = device.taints.map((taint) => {
    const timeAdded = taint.timeAdded ?? before.find((other) => sameTaint(taint, other))?.timeAdded;
    return timeAdded === undefined ? taint : { ...taint, timeAdded };
  });
  return { ...device, taints };
}

function taintsByDevice(stored: StoredSlice[]): Map<string, DeviceTaint[]> {
  const taints = new Map<string, DeviceTaint[]>();
  for (const device of stored.flatMap(({ devices }) => devices)) {
    if (device.taints?.length) taints.set(device.name, device.taints);
  }
  return taints;
}

function memoize<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

function specNodes(
  nodes: PoolNodes,
  nodeName: string,
): Pick<SliceSpec, "nodeName" | "nodeSelector" | "allNodes" | "perDeviceNodeSelection"> {
  switch (nodes.kind) {
    case "thisNode":
      return { nodeName };
    case "allNodes":
      return { allNodes: true };
    case "selector":
      return { nodeSelector: nodes.selector };
    case "perDevice":
      return { perDeviceNodeSelection: true };
  }
}
