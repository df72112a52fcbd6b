import { fieldsText, sameTaint, sameTaints } from "../model/canonical.ts";
import type {
  CheckedCounterSet,
  CheckedDevice,
  CheckedPool,
  ForeignSlice,
  StoredSlice,
} from "../model/checked.ts";
import { taintsOf } from "../model/feature-bits.ts";
import type { CounterSet, Device, DeviceTaint, SliceSpec } from "../model/model.ts";
import { PlanMemory, type Target } from "./plan-memory.ts";
import { nameSuffix, poolKey } from "./slice-names.ts";
import { targetsOf } from "./targets.ts";

export interface PlanInput {
  driver: string;
  /** Undefined if these are pools beyond the node. */
  nodeName: string | undefined;
  /** With unique names, as `checkPools` returns them. */
  pools: readonly CheckedPool[];
  /** Exactly the slices of the driver that this node published, or those of its pools beyond the node. */
  stored: readonly StoredSlice[];
  /** Slices of the driver on this node that other clients published. */
  foreign?: readonly ForeignSlice[];
  /** The driver's earlier plans. Only affects how long a plan takes. */
  memory?: PlanMemory;
}

/** A slice to write. */
export interface SliceWrite {
  /** The slice that it replaces; undefined for a new slice. */
  stored: StoredSlice | undefined;
  name: string;
  spec: SliceSpec;
  /** The devices of the spec. */
  devices: readonly CheckedDevice[];
  counterSets: readonly CheckedCounterSet[];
  /** Whether it differs from the slice that it replaces in more than the pool's generation. */
  isChanged: boolean;
}

/** Writes for one pool. Deletions come first, so that no removed device is allocated. */
export interface PoolPlan {
  pool: string;
  /** Whether the scheduler can allocate from the pool as it is stored now. */
  isAllocatable: boolean;
  /** Whether the generation rises. Then the scheduler can't allocate from the pool until all writes are done. */
  rises: boolean;
  deletes: StoredSlice[];
  writes: SliceWrite[];
  /** Slices of other clients that are outdated after the writes, because their generation is lower. */
  outdated: ForeignSlice[];
}

/**
 * Plans the writes that bring the slices to what the driver reports, based only on what the API server has. Pools to
 * remove come first. An unchanged pool has no plan.
 *
 * A pool's generation rises if a reader that sees only some of the writes could mistake the mix for a complete pool.
 * All its slices are written then. The generation stays if such a mix can't occur: one slice changes in place; only
 * taints change (each affects only its device); or slices are missing or of an older generation while the others are up
 * to date, because readers wait for all of them.
 *
 * It also rises above the generation of slices that another client published in the pool. Otherwise readers would mix
 * them with the agent's, or use them instead.
 */
export function planSlices(input: PlanInput): PoolPlan[] {
  const { pools, stored, foreign = [], memory = new PlanMemory() } = input;
  const byPool = Map.groupBy(stored, (slice) => slice.pool.name);
  const foreignByPool = Map.groupBy(foreign, (slice) => slice.pool);
  const plans = pools.map((pool) => {
    const others = foreignByPool.get(pool.name) ?? [];
    const plan = planPool({ ...input, memory }, pool, byPool.get(pool.name) ?? [], others);
    byPool.delete(pool.name);
    return plan;
  });
  memory.keepOnly(pools);
  const removals = [...byPool].map(
    ([pool, deletes]): PoolPlan => ({
      pool,
      isAllocatable: false,
      rises: false,
      deletes,
      writes: [],
      outdated: [],
    }),
  );
  return [...removals, ...plans].filter(
    ({ deletes, writes, outdated }) => deletes.length + writes.length + outdated.length > 0,
  );
}

type Difference = "none" | "taints" | "more";

function planPool(
  { driver, nodeName, memory }: Pick<PlanInput, "driver" | "nodeName"> & { memory: PlanMemory },
  pool: CheckedPool,
  stored: StoredSlice[],
  foreign: ForeignSlice[],
): PoolPlan {
  const targets =
    memory.again(pool, stored) ?? targetsOf(pool, stored, nameSuffix(driver, nodeName, poolKey(pool.name)));
  memory.keep(pool, targets);
  const kept = new Set(targets.map((target) => target.stored));
  const count = targets.length;
  const compared = targets.map((target) => ({
    target,
    difference: differenceOf(target, fieldsText(pool.fields), count),
  }));

  const newest = Math.max(0, ...stored.map((slice) => slice.pool.generation));
  const generation = Math.max(newest, ...foreign.map((slice) => slice.generation));
  const isVisible = (slice: StoredSlice) => slice.pool.generation === generation;
  const isContested = foreign.some((slice) => slice.generation >= newest);
  const rises = stored.length === 0 || isContested || wouldMix(compared, stored, kept, isVisible);
  const next = rises ? generation + 1 : generation;

  let taints: Map<string, DeviceTaint[]> | undefined;
  const taintsBefore = () => {
    taints ??= taintsByDevice(stored);
    return taints;
  };
  const writes: SliceWrite[] = [];
  for (const { target, difference } of compared) {
    const isCurrent = !rises && target.stored && isVisible(target.stored);
    if (isCurrent && difference === "none" && target.stored?.isMarked !== false) continue;
    const { devices = [], counters: counterSets = [] } = target;
    const spec: SliceSpec = {
      driver,
      pool: { name: pool.name, generation: next, resourceSliceCount: count },
      ...(nodeName !== undefined && { nodeName }),
      ...pool.fields,
      ...contentOf(target, taintsBefore),
    };
    const isChanged = difference !== "none";
    writes.push({ stored: target.stored, name: target.name, spec, devices, counterSets, isChanged });
  }
  const visible = stored.filter(isVisible);
  return {
    pool: pool.name,
    isAllocatable:
      !isContested &&
      visible.length > 0 &&
      visible.every((slice) => slice.pool.resourceSliceCount === visible.length),
    rises,
    deletes: stored.filter((slice) => !kept.has(slice)),
    // Updates come before creations because they may remove devices that another slice gets.
    writes: writes.filter((write) => write.stored).concat(writes.filter((write) => !write.stored)),
    outdated: foreign,
  };
}

// Returns whether writes at the current generation could show readers a state that never existed. Slices of older
// generations count as absent.
function wouldMix(
  compared: readonly { target: Target; difference: Difference }[],
  stored: StoredSlice[],
  kept: ReadonlySet<StoredSlice | undefined>,
  isVisible: (slice: StoredSlice) => boolean,
): boolean {
  const changed = compared.filter(
    ({ target: { stored: slice }, difference }) => slice && isVisible(slice) && difference !== "none",
  );
  const adds = compared.some(({ target: { stored: slice } }) => !slice || !isVisible(slice));
  const removes = stored.some((slice) => isVisible(slice) && !kept.has(slice));
  if (changed.length === 0) return adds && removes;
  if (adds || removes) return true;
  return changed.length > 1 && changed.some(({ difference }) => difference !== "taints");
}

function differenceOf(target: Target, fields: string, count: number): Difference {
  const { stored } = target;
  if (!stored) return "more";
  if (stored.pool.resourceSliceCount !== count || stored.fields !== fields) return "more";
  const counters = target.counters ?? [];
  const devices = target.devices ?? [];
  if (stored.counterSets.length !== counters.length || stored.devices.length !== devices.length)
    return "more";
  if (counters.some(({ fingerprint }, at) => fingerprint !== stored.counterSets[at])) return "more";
  let difference: Difference = "none";
  for (let at = 0; at < devices.length; at++) {
    const checked = devices[at]!;
    const other = stored.devices[at]!;
    // The same object was sent before: its taints have the times that the server assigned.
    if (checked === other.sent) continue;
    if (checked.fingerprint !== other.fingerprint) return "more";
    if (!sameTaints(taintsOf(checked), other.taints)) difference = "taints";
  }
  return difference;
}

function contentOf(
  { devices, counters }: Target,
  taintsBefore: () => ReadonlyMap<string, DeviceTaint[]>,
): { devices: Device[] } | { sharedCounters: CounterSet[] } {
  if (counters) return { sharedCounters: counters.map(({ set }) => set) };
  return { devices: (devices ?? []).map((checked) => withTaintTimes(checked.device, taintsBefore)) };
}

// A taint that stays keeps the time that the API server assigned, because evictions are timed from it.
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
