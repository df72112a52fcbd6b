import { Canonical } from "../model/canonical.ts";
import type { CheckedDevice, CheckedPool, CheckedPools } from "../model/checked.ts";
import { checkedDevice } from "../model/checked-device.ts";
import { taintsOf } from "../model/feature-bits.ts";
import { limits } from "../model/limits.ts";
import type { DeviceTaint } from "../model/model.ts";

/** Taints that the agent adds to those that the driver reports. A new object for each change. */
export interface AddedTaints {
  /** On every device. */
  readonly all: readonly DeviceTaint[];
  /** By `<pool>/<device>`. */
  readonly byDevice: ReadonlyMap<string, readonly DeviceTaint[]>;
}

/** Reasons for the agent to taint a driver's devices, as found by the module that prepares claims. */
export interface TaintReasons extends Pick<AddedTaints, "byDevice"> {
  /** The driver does not answer calls, so that pods on its devices could not start. */
  readonly isStuck: boolean;
}

/** Taint of devices whose driver is disconnected, unresponsive or stuck: pods that use them could not start. */
export const disconnectedTaint: DeviceTaint = {
  key: "nodekeeper.dev/driver-disconnected",
  effect: "NoSchedule",
};

/** Adds taints to devices. Unchanged devices stay the same objects, across calls too. */
export class TaintedDevices {
  #tainted = new WeakMap<CheckedDevice, CheckedDevice>();
  #made: { from: CheckedPools; added: AddedTaints; pools: CheckedPools } | undefined;
  #added: AddedTaints | undefined;

  of(from: CheckedPools, added: AddedTaints): CheckedPools {
    if (this.#made?.from === from && this.#made.added === added) return this.#made.pools;
    if (this.#added !== added) this.#tainted = new WeakMap();
    this.#added = added;
    const canonical = new Canonical();
    const pools = { ...from, pools: from.pools.map((pool) => this.#pool(pool, added, canonical)) };
    this.#made = { from, added, pools };
    return pools;
  }

  #pool(pool: CheckedPool, { all, byDevice }: AddedTaints, canonical: Canonical): CheckedPool {
    let isChanged = false;
    const devices = pool.devices.map((checked) => {
      const own = byDevice.get(`${pool.name}/${checked.name}`) ?? [];
      if (all.length + own.length === 0) return checked;
      const taints = taintsOf(checked) ?? [];
      const more = [...all, ...own].filter(
        ({ key, effect }) => !taints.some((taint) => taint.key === key && taint.effect === effect),
      );
      // Few pods tolerate a device with that many taints, and the API server refuses more than the limit.
      if (more.length === 0 || taints.length + more.length > limits.taints) return checked;
      isChanged = true;
      const known = this.#tainted.get(checked);
      if (known) return known;
      const made = checkedDevice({ ...checked.device, taints: [...taints, ...more] }, canonical);
      this.#tainted.set(checked, made);
      return made;
    });
    return isChanged ? { ...pool, devices } : pool;
  }
}
