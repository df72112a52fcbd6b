import { Backoff, retryPolicies } from "@nodekeeper/core/lib";
import type { CheckedDevice, CheckedPool } from "../model/checked.ts";
import type { DeviceProblem } from "../model/model.ts";

interface Refused {
  device: CheckedDevice;
  message: string;
}

/** Devices of one driver that the API server refuses. They are quarantined until they change or are retried. */
export class RefusedDevices {
  readonly #byPool = new Map<string, Map<string, Refused>>();
  readonly #backoff: Backoff;
  #size = 0;
  #isToBeChecked = false;

  constructor(random?: () => number) {
    this.#backoff = new Backoff({ ...retryPolicies.quarantinedDevices, random });
  }

  get size(): number {
    return this.#size;
  }

  /** Whether devices that were refused are written again, so that a dry run must come first. */
  get isToBeChecked(): boolean {
    return this.#isToBeChecked;
  }

  /** Records that everything was sent as a dry run. */
  checked(): void {
    this.#isToBeChecked = false;
  }

  add(pool: string, devices: readonly CheckedDevice[], message: string): void {
    const refused = this.#byPool.get(pool) ?? new Map<string, Refused>();
    this.#byPool.set(pool, refused);
    for (const device of devices) refused.set(device.name, { device, message });
    this.#count();
  }

  /** Returns the pools without the refused devices. A device that has changed is no longer refused. */
  without(pools: readonly CheckedPool[]): readonly CheckedPool[] {
    if (this.#size === 0) return pools;
    const names = new Set(pools.map(({ name }) => name));
    for (const pool of this.#byPool.keys()) if (!names.has(pool)) this.#byPool.delete(pool);
    const kept = pools.map((pool) => {
      const refused = this.#byPool.get(pool.name);
      if (!refused) return pool;
      const seen = new Set<string>();
      const devices = pool.devices.filter((device) => {
        const known = refused.get(device.name);
        if (!known) return true;
        if (known.device === device || known.device.fingerprint === device.fingerprint) {
          seen.add(device.name);
          return false;
        }
        return true;
      });
      for (const name of refused.keys()) if (!seen.has(name)) refused.delete(name);
      return { ...pool, devices };
    });
    this.#count();
    return kept;
  }

  /** Returns the delay until the refused devices are retried, milliseconds. It grows each time. */
  retryDelay(): number {
    return this.#backoff.next();
  }

  /** Includes the refused devices again, after a dry run. */
  retry(): void {
    this.#byPool.clear();
    this.#isToBeChecked = true;
    this.#count();
  }

  /** Resets the backoff if no device is refused. */
  settled(): void {
    if (this.#size === 0) this.#backoff.reset();
  }

  problems(): DeviceProblem[] {
    return [...this.#byPool].flatMap(([pool, refused]) =>
      [...refused].map(([device, { message }]) => ({
        pool,
        device,
        field: "",
        message: `refused by the API server: ${message}`,
      })),
    );
  }

  #count(): void {
    this.#size = 0;
    for (const refused of this.#byPool.values()) this.#size += refused.size;
  }
}
