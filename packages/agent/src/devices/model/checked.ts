import type { ObjectMeta } from "@nodekeeper/core/kube";
import type { CounterSet, Device, DeviceProblem, DeviceTaint, PoolFields, SlicePool } from "./model.ts";

/** A valid device, with what planning compares. */
export interface CheckedDevice {
  readonly name: string;
  readonly device: Device;
  /** Equal for equivalent devices, regardless of taints and the format of quantities. */
  readonly fingerprint: string;
  /** Whether its slice is limited to 64 devices. */
  advanced: boolean;
  /** `featuresOf` the device. */
  features: number;
}

export interface CheckedCounterSet {
  set: CounterSet;
  fingerprint: string;
}

/** A pool of valid devices; input of planning. */
export interface CheckedPool {
  name: string;
  fields: PoolFields;
  /** In the driver's order, with unique names. */
  devices: CheckedDevice[];
  counterSets: CheckedCounterSet[];
}

/** The valid parts of a driver's pools, and what is not published and why. */
export interface CheckedPools {
  pools: CheckedPool[];
  /** At most as many as the options allow, and a few per device. */
  problems: DeviceProblem[];
  /** Number of quarantined devices, including those of refused pools. */
  quarantined: number;
}

/** A device as the API server has it, reduced to what planning compares. */
export interface StoredDevice {
  name: string;
  readonly fingerprint: string;
  /** The device as the agent sent it, if the server stored this device in response. It is not sent again. */
  sent?: CheckedDevice;
  taints?: DeviceTaint[];
}

/** A ResourceSlice as the API server has it, reduced to keep the cache small. */
export interface StoredSlice {
  /** As stored; an update keeps it. */
  metadata: ObjectMeta;
  name: string;
  driver: string;
  pool: SlicePool;
  /** `fieldsText` of the pool's fields. */
  fields: string;
  devices: StoredDevice[];
  /** Fingerprints. */
  counterSets: string[];
  /** Whether it has the agent's label and owner reference. */
  isMarked?: boolean;
}

/** Identifies a stored slice in requests. */
export interface SliceIdentity {
  name: string;
  metadata: ObjectMeta;
}

/** A slice that another client published. */
export interface ForeignSlice extends SliceIdentity {
  pool: string;
  generation: number;
}
