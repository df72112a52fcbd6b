/*
 * The devices of a driver as the agent thinks of them: plain values in the shape of resource.k8s.io/v1's JSON,
 * whatever protocol they came by and whatever API version they leave by.
 */

/** An integer of 64 bits: a number where that is exact, else a bigint. */
export type Int64 = number | bigint;

/** The value of an attribute; a valid one has exactly one field. */
export interface DeviceAttribute {
  bool?: boolean;
  int?: Int64;
  string?: string;
  version?: string;
  bools?: boolean[];
  ints?: Int64[];
  strings?: string[];
  versions?: string[];
}

/** How requests may take a part of a capacity. All are quantities. */
export interface RequestPolicy {
  default?: string;
  /** Ascending. */
  validValues?: string[];
  validRange?: { min?: string; max?: string; step?: string };
}

export interface DeviceCapacity {
  /** A quantity. */
  value: string;
  requestPolicy?: RequestPolicy;
}

export interface DeviceTaint {
  key: string;
  value?: string;
  effect: string;
  /** RFC 3339 in whole seconds, UTC. The API server sets it where absent. */
  timeAdded?: string;
}

/** Quantities by counter name. */
export type Counters = Record<string, { value: string }>;

export interface CounterSet {
  name: string;
  counters: Counters;
}

export interface CounterConsumption {
  counterSet: string;
  counters: Counters;
  compatibilityGroups?: string[];
}

/** How much of one of the node's own resources an allocation takes up. All but the key are quantities. */
export interface NodeAllocatableResource {
  mapping?: { capacityKey?: string; capacityMultiplier?: string; deviceMultiplier?: string };
  overhead?: { perPod?: string; perContainer?: string };
}

export interface Device {
  name: string;
  attributes?: Record<string, DeviceAttribute>;
  capacity?: Record<string, DeviceCapacity>;
  consumesCounters?: CounterConsumption[];
  taints?: DeviceTaint[];
  bindsToNode?: boolean;
  bindingConditions?: string[];
  bindingFailureConditions?: string[];
  allowMultipleAllocations?: boolean;
  nodeAllocatableResources?: Record<string, NodeAllocatableResource>;
}

/** What holds for all slices of a pool. */
export interface PoolFields {
  /** "<domain>/<identifier>" */
  partitionTypeAttribute?: string;
  skipNodeOperations?: string[];
}

/** One of a driver's pools, as the driver reports it. All of its devices are this node's. */
export interface DevicePool {
  name: string;
  fields?: PoolFields;
  /** In the driver's order, which is the order in which the scheduler tries them. */
  devices: Device[];
  sharedCounters: CounterSet[];
}

/** One slice's place among those of its pool. */
export interface SlicePool {
  name: string;
  /** A reader uses only the slices with the pool's highest generation. */
  generation: number;
  /** A reader uses them only when it sees this many. */
  resourceSliceCount: number;
}

/** The spec of a ResourceSlice of one node. */
export interface SliceSpec extends PoolFields {
  driver: string;
  pool: SlicePool;
  nodeName: string;
  /** A slice has devices or shared counters, not both. */
  devices?: Device[];
  sharedCounters?: CounterSet[];
}

/** The model of resource.k8s.io/v1alpha2, of Kubernetes 1.30 only. */
export interface NamedResources {
  instances: NamedInstance[];
}

export interface NamedInstance {
  /** A DNS subdomain. */
  name: string;
  attributes: NamedAttribute[];
}

/** Exactly one field beside the name is set in a valid one. */
export interface NamedAttribute {
  /** A DNS subdomain. */
  name: string;
  quantity?: string;
  bool?: boolean;
  int?: Int64;
  intSlice?: { ints: Int64[] };
  string?: string;
  stringSlice?: { strings: string[] };
  version?: string;
}

/** Something that is not published, and why: for a condition, a metric, an Event and `nodekeeper devices`. */
export interface DeviceProblem {
  pool: string;
  /** Absent where it is the pool's own. */
  device?: string;
  /** "attributes[driverVersion].version" */
  field: string;
  message: string;
}
