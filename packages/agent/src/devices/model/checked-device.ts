import type { Canonical } from "./canonical.ts";
import type { CheckedDevice } from "./checked.ts";
import { featuresOf, isList } from "./feature-bits.ts";
import type { Device } from "./model.ts";

/** A checked device whose fingerprint is computed on first use, when it is compared with a stored one. */
class LazyDevice implements CheckedDevice {
  readonly device: Device;
  readonly advanced: boolean;
  readonly features: number;
  readonly #canonical: Canonical;
  #fingerprint: string | undefined;

  constructor(device: Device, canonical: Canonical) {
    this.device = device;
    this.advanced = isAdvanced(device);
    this.features = featuresOf(device);
    this.#canonical = canonical;
  }

  get name(): string {
    return this.device.name;
  }

  get fingerprint(): string {
    this.#fingerprint ??= this.#canonical.deviceFingerprint(this.device);
    return this.#fingerprint;
  }
}

/** Wraps a valid device. */
export function checkedDevice(device: Device, canonical: Canonical): CheckedDevice {
  return new LazyDevice(device, canonical);
}

function isAdvanced({ taints, consumesCounters, attributes }: Device): boolean {
  if (taints?.length || consumesCounters?.length) return true;
  for (const name in attributes) if (isList(attributes[name]!)) return true;
  return false;
}
