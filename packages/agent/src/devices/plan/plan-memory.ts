import type { CheckedDevice, CheckedPool, StoredSlice } from "../model/checked.ts";

/** The desired state of one slice. `stored` is the slice that it replaces. */
export interface Target {
  stored: StoredSlice | undefined;
  name: string;
  devices?: CheckedDevice[];
  counters?: CheckedPool["counterSets"];
}

/** Stores how the last plan of each pool assigned its devices to slices. */
export class PlanMemory {
  readonly #layouts = new Map<string, Layout>();

  /** Stores the layout of a pool. */
  keep(pool: CheckedPool, targets: readonly Target[]): void {
    this.#layouts.set(pool.name, { pool, targets });
  }

  /** Removes the layouts of all other pools. */
  keepOnly(pools: readonly CheckedPool[]): void {
    const names = new Set(pools.map(({ name }) => name));
    for (const name of this.#layouts.keys()) if (!names.has(name)) this.#layouts.delete(name);
  }

  /**
   * Returns the last layout for the current pool, if only the contents of devices have changed since and the slices
   * hold the devices assigned to them. Both are required because a layout depends on them, and the writes of the last
   * plan may have failed. Undefined if the layout may differ.
   */
  again(pool: CheckedPool, stored: readonly StoredSlice[]): Target[] | undefined {
    const known = this.#layouts.get(pool.name);
    if (!known || known.targets.length !== stored.length) return undefined;
    const { devices, counterSets } = known.pool;
    if (devices.length !== pool.devices.length || counterSets.length !== pool.counterSets.length)
      return undefined;
    for (const [at, { fingerprint }] of counterSets.entries())
      if (fingerprint !== pool.counterSets[at]!.fingerprint) return undefined;
    for (let at = 0; at < devices.length; at++) {
      const before = devices[at]!;
      const now = pool.devices[at]!;
      if (before === now) continue;
      if (before.name !== now.name || before.advanced !== now.advanced) return undefined;
    }
    const byName = new Map(stored.map((slice) => [slice.name, slice]));
    const targets: Target[] = [];
    let at = 0;
    for (const target of known.targets) {
      const slice = byName.get(target.name);
      if (!slice) return undefined;
      const size = target.devices?.length;
      if (slice.devices.length !== (size ?? 0)) return undefined;
      let isSame = true;
      // Not `entries()`: until this is compiled, which is late in a small process, it allocates 200 bytes of garbage
      // per device.
      for (let offset = 0; offset < slice.devices.length; offset++) {
        const device = pool.devices[at + offset]!;
        if (slice.devices[offset]!.name !== device.name) return undefined;
        if (target.devices![offset] !== device) isSame = false;
      }
      targets.push({
        stored: slice,
        name: target.name,
        ...(target.counters && { counters: target.counters }),
        // Reuses an unchanged list: new lists of all devices with each change dominate garbage collection.
        ...(size !== undefined && { devices: isSame ? target.devices! : pool.devices.slice(at, at + size) }),
      });
      at += size ?? 0;
    }
    return targets;
  }
}

interface Layout {
  pool: CheckedPool;
  targets: readonly Target[];
}
