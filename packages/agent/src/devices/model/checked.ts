import type { ObjectMeta } from "@nodekeeper/core/kube";
import type { CounterSet, Device, DeviceProblem, DeviceTaint, PoolFields, SlicePool } from "./model.ts";

/** A device that breaks no rule, with what planning compares. */
export interface CheckedDevice {
  readonly name: string;
  readonly device: Device;
  /** Equal for devices of equal meaning, whatever their taints and however their quantities are written. */
  readonly fingerprint: string;
  /** It holds its slice to 64 devices. */
  advanced: boolean;
  /** `featuresOf` the device. */
  features: number;
}

export interface CheckedCounterSet {
  set: CounterSet;
  fingerprint: string;
}

/** A pool whose devices may all be sent; what planning takes. */
export interface CheckedPool {
  name: string;
  fields: PoolFields;
  /** In the driver's order, names unique. */
  devices: CheckedDevice[];
  counterSets: CheckedCounterSet[];
}

/** What is left of a driver's pools, and what is not published and why. */
export interface CheckedPools {
  pools: CheckedPool[];
  /** At most as many as the options allow, a few for each device. */
  problems: DeviceProblem[];
  /** How many devices are quarantined, those of refused pools included. */
  quarantined: number;
}

/** A device as the API server has it: what planning compares, without the rest. */
export interface StoredDevice {
  name: string;
  readonly fingerprint: string;
  /** What the agent sent, where the stored device is the answer to it: the same is not sent again. */
  sent?: CheckedDevice;
  taints?: DeviceTaint[];
}

/** A ResourceSlice as the API server has it; small, so that a cache of them is. */
export interface StoredSlice {
  /** As it is there: an update keeps it. */
  metadata: ObjectMeta;
  name: string;
  driver: string;
  pool: SlicePool;
  /** `fieldsText` of what holds for the whole pool. */
  fields: string;
  devices: StoredDevice[];
  /** Fingerprints. */
  counterSets: string[];
  /** Whether the agent's label and owner reference are there. */
  isMarked?: boolean;
}

/** What a request needs to know of a slice that the API server has. */
export interface SliceIdentity {
  name: string;
  metadata: ObjectMeta;
}

/** A slice that another client published. */
export interface ForeignSlice extends SliceIdentity {
  pool: string;
  generation: number;
}
