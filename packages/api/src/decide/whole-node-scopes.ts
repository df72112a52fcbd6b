/**
 * Scopes of thresholds to which every pod of the node belongs. For any other scope (a NUMA node, a disk, a pool of
 * CPUs, an extended resource) the agent does not know which pods use the resource.
 *
 * Sources: the scope SystemMemory of katalyst-core `pkg/agent/evictionmanager/plugin/memory` (its NUMA plugins use
 * NumaMemory, or "zone..." with the resource); the signals of the kubelet, `pkg/kubelet/eviction/api`; and the names of
 * these resources.
 */
export const wholeNodeScopes: ReadonlySet<string> = new Set([
  "SystemMemory",
  "memory",
  "memory.available",
  "cpu",
  "pid",
  "pid.available",
]);
