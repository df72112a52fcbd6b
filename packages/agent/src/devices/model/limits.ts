/** Limits of resource.k8s.io/v1 as of Kubernetes 1.37, and a few of the agent that bound messages. */
export const limits = {
  devicesPerSlice: 128,
  /** If a device of the slice has taints, consumes counters, or has a list attribute. */
  advancedDevicesPerSlice: 64,
  driverName: 63,
  poolName: 253,
  identifier: 32,
  /** Attributes and capacities combined. */
  attributesAndCapacities: 32,
  /** Each item of a list counts. */
  attributeValues: 48,
  /** Bytes of a string or version. */
  attributeText: 64,
  taints: 16,
  bindingConditions: 4,
  counterSetsPerSlice: 8,
  countersPerSet: 32,
  consumedCounterSets: 2,
  compatibilityGroups: 2,
  requestPolicyValues: 10,
} as const;
