import { BinaryReader } from "@bufbuild/protobuf/wire";
import type { Canonical } from "./canonical.ts";
import type { CheckedDevice } from "./checked.ts";
import { featuresOf, isList } from "./feature-bits.ts";
import type { Device } from "./model.ts";
import { readDevice, UnknownFields } from "./read-device.ts";

/** A checked device whose fingerprint is computed when it is first compared with a stored one. */
abstract class LazyDevice implements CheckedDevice {
  readonly name: string;
  readonly advanced: boolean;
  readonly features: number;
  readonly #canonical: Canonical;
  #fingerprint: string | undefined;

  constructor(device: Device, canonical: Canonical) {
    this.name = device.name;
    this.advanced = isAdvanced(device);
    this.features = featuresOf(device);
    this.#canonical = canonical;
  }

  abstract get device(): Device;

  get fingerprint(): string {
    this.#fingerprint ??= this.#canonical.deviceFingerprint(this.device);
    return this.#fingerprint;
  }
}

class PlainDevice extends LazyDevice {
  readonly #device: Device;

  constructor(device: Device, canonical: Canonical) {
    super(device, canonical);
    this.#device = device;
  }

  get device(): Device {
    return this.#device;
  }
}

// What a device is made of would be dozens of objects, which every collection of garbage goes over. As a text, its bytes
// are one, and hold on to no message.
class PackedDevice extends LazyDevice {
  readonly #bytes: string;

  constructor(device: Device, bytes: Uint8Array, canonical: Canonical) {
    super(device, canonical);
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  }

  get device(): Device {
    const bytes = Buffer.from(this.#bytes, "latin1");
    return readDevice(new BinaryReader(bytes), bytes.length, new UnknownFields());
  }
}

/**
 * A device that breaks no rule.
 * @param bytes that the device was read from, where it is what they say: kept instead of it
 */
export function checkedDevice(device: Device, canonical: Canonical, bytes?: Uint8Array): CheckedDevice {
  return bytes ? new PackedDevice(device, bytes, canonical) : new PlainDevice(device, canonical);
}

function isAdvanced({ taints, consumesCounters, attributes }: Device): boolean {
  if (taints?.length || consumesCounters?.length) return true;
  for (const name in attributes) if (isList(attributes[name]!)) return true;
  return false;
}
