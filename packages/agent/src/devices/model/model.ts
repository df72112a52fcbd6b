/*
 * The agent's model of a driver's devices: plain values in the shape of resource.k8s.io/v1's JSON, regardless of the
 * driver's protocol and the published API version.
 */

/** A 64-bit integer: a number if that is exact, otherwise a bigint. */
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

/** How requests may consume part of a capacity. All values are quantities. */
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
  /** RFC 3339 in whole seconds, UTC. The API server sets it if it is absent. */
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

/** How much of a node resource an allocation uses. All fields but the key are quantities. */
export interface NodeAllocatableResource {
  mapping?: { capacityKey?: string; capacityMultiplier?: string; deviceMultiplier?: string };
  overhead?: { perPod?: string; perContainer?: string };
}

/** As in core/v1. */
export interface NodeSelectorRequirement {
  key: string;
  operator: string;
  values?: string[];
}

export interface NodeSelectorTerm {
  matchExpressions?: NodeSelectorRequirement[];
  matchFields?: NodeSelectorRequirement[];
}

/** As in core/v1; that of a ResourceSlice has exactly one term. */
export interface NodeSelector {
  nodeSelectorTerms: NodeSelectorTerm[];
}

/** The nodes that devices can be used from. A valid one has exactly one field. */
export interface DeviceNodes {
  nodeName?: string;
  nodeSelector?: NodeSelector;
  allNodes?: boolean;
}

/** `DeviceNodes` are set only in a pool with `perDeviceNodeSelection`. */
export interface Device extends DeviceNodes {
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

/** Fields that are equal in all slices of a pool. */
export interface PoolFields {
  /** "<domain>/<identifier>" */
  partitionTypeAttribute?: string;
  skipNodeOperations?: string[];
  /** Exactly one of these three is set in a pool beyond the node, none in a pool of the node. */
  nodeSelector?: NodeSelector;
  allNodes?: boolean;
  perDeviceNodeSelection?: boolean;
}

/** Returns whether a pool's devices can be used from other nodes. */
export function isBeyondNode({ nodeSelector, allNodes, perDeviceNodeSelection }: PoolFields): boolean {
  return nodeSelector !== undefined || allNodes === true || perDeviceNodeSelection === true;
}

/** Returns the fields of a slice that say which nodes its devices can be used from. */
export function nodesOf(
  { nodeSelector, allNodes, perDeviceNodeSelection }: PoolFields,
  nodeName: string | undefined,
): Pick<SliceSpec, "nodeName" | "nodeSelector" | "allNodes" | "perDeviceNodeSelection"> {
  if (nodeName !== undefined) return { nodeName };
  return {
    ...(nodeSelector && { nodeSelector }),
    ...(allNodes && { allNodes }),
    ...(perDeviceNodeSelection && { perDeviceNodeSelection }),
  };
}

/** A pool as its driver reports it. */
export interface DevicePool {
  name: string;
  fields?: PoolFields;
  /** In the driver's order. The scheduler tries devices in this order. */
  devices: Device[];
  sharedCounters: CounterSet[];
}

/** The position of a slice in its pool. */
export interface SlicePool {
  name: string;
  /** Readers use only the slices of the pool's highest generation. */
  generation: number;
  /** Readers use the slices only if they see this many. */
  resourceSliceCount: number;
}

/** The spec of a ResourceSlice. */
export interface SliceSpec extends PoolFields {
  driver: string;
  pool: SlicePool;
  /** Absent for a pool beyond the node. */
  nodeName?: string;
  /** A slice has devices or shared counters, not both. */
  devices?: Device[];
  sharedCounters?: CounterSet[];
}

/** The model of resource.k8s.io/v1alpha2 (Kubernetes 1.30 only). */
export interface NamedResources {
  instances: NamedInstance[];
}

export interface NamedInstance {
  /** A DNS subdomain. */
  name: string;
  attributes: NamedAttribute[];
}

/** If valid, exactly one field besides the name is set. */
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

/** What is not published, and why: for a condition, a metric, an Event and `nodekeeper devices`. */
export interface DeviceProblem {
  pool: string;
  /** Undefined if it concerns the pool. */
  device?: string;
  /** "attributes[driverVersion].version" */
  field: string;
  message: string;
}
