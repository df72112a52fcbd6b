import type { CheckedDevice, CheckedPools } from "../model/checked.ts";
import type { Feature } from "../model/feature-bits.ts";
import { isBeyondNode } from "../model/model.ts";

/** The pools of a driver that belong to the node, or those beyond it, with what is known about their desired state. */
export class PoolPart<Desired> {
  readonly #isBeyond: boolean;
  readonly #parts = new WeakMap<CheckedPools, CheckedPools>();
  made: { source: unknown; key: string; desired: Desired } | undefined;
  needed: { of: CheckedPools; features: readonly Feature[] } | undefined;
  #reduced: { key: string; devices: WeakMap<CheckedDevice, CheckedDevice> } | undefined;

  /** @param isBeyond whether it is that of pools beyond the node */
  constructor(isBeyond: boolean) {
    this.#isBeyond = isBeyond;
  }

  /** Returns the pools of this part. Only the node's part has problems. The same input returns the same object. */
  of(checked: CheckedPools): CheckedPools {
    const known = this.#parts.get(checked);
    if (known) return known;
    const pools = checked.pools.filter(({ fields }) => isBeyondNode(fields) === this.#isBeyond);
    const isWhole = pools.length === checked.pools.length && !this.#isBeyond;
    const refused = this.#isBeyond ? { problems: [], quarantined: 0 } : {};
    const part = isWhole ? checked : { ...checked, pools, ...refused };
    this.#parts.set(checked, part);
    return part;
  }

  /**
   * Returns a cache of reduced devices, so that a device reduced by the same features stays the same object. Another
   * key clears the cache.
   */
  reducedFor(key: string): WeakMap<CheckedDevice, CheckedDevice> {
    if (this.#reduced?.key !== key) this.#reduced = { key, devices: new WeakMap() };
    return this.#reduced.devices;
  }
}
