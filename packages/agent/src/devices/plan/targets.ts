import type { CheckedPool, StoredSlice } from "../model/checked.ts";
import { limits } from "../model/limits.ts";
import { type Group, layOut } from "./layout.ts";
import type { Target } from "./plan-memory.ts";
import { firstCounterIndex, indexOfName, sliceName } from "./slice-names.ts";

/**
 * Returns the slices that a pool needs, with their contents and the stored slices that they replace.
 * @param suffix of the names of the pool's slices
 */
export function targetsOf(pool: CheckedPool, stored: StoredSlice[], suffix: string): Target[] {
  const taken = new Set(stored.map(({ name }) => name));
  const sorted = stored.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const deviceSlots = sorted.filter((slice) => slice.counterSets.length === 0);
  const counterSlots = sorted.filter((slice) => slice.counterSets.length > 0);

  const targets: Target[] = [];
  for (let at = 0; at * limits.counterSetsPerSlice < pool.counterSets.length; at++) {
    const from = at * limits.counterSetsPerSlice;
    targets.push({
      stored: counterSlots[at],
      name: counterSlots[at]?.name ?? freeName(firstCounterIndex + at, suffix, taken),
      counters: pool.counterSets.slice(from, from + limits.counterSetsPerSlice),
    });
  }
  // A pool with only counters needs no slice of devices. An empty pool has one slice, which shows that the driver is
  // present.
  if (pool.devices.length === 0 && targets.length > 0) return targets;
  const groups = layOut(
    pool.devices,
    deviceSlots.map(({ name, devices }) => ({
      index: indexOfName(name),
      devices: devices.map((device) => device.name),
    })),
    {
      missing: missingSlots(stored, pool),
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

// Returns how many slices with devices are missing from the count that the newest slice announces.
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
