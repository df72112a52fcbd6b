import type { containerExit, nodePod, step, ValueOf } from "../openapi/index.ts";

/** The history of a current or former pod of the node. */
export type NodePod = ValueOf<typeof nodePod>;

/**
 * How a pod ends or has ended, from its object at the API server. `disruption` is the condition `DisruptionTarget`
 * (KEP-3329), which is set before the scheduler, the Eviction API, the taint manager, the pod garbage collector or the
 * kubelet disrupts a pod. `reason` is `status.reason`: "Evicted", "Terminated" at node shutdown, "OutOfcpu" if the
 * kubelet rejects the pod.
 */
export type PodEnding = NodePod["ending"];

/**
 * A container that exited. Its ID is the runtime's without a scheme; empty if unknown. `memoryLimit` is the limit of an
 * OOM-killed container in the pod spec.
 */
export type ContainerExit = ValueOf<typeof containerExit>;

/**
 * Maximum number of container exits in a pod's history; the last exit of each container is kept beyond it. A history
 * with fewer exits has all that the agent observed.
 */
export const MOST_EXITS = 20;

/**
 * A recorded step of an eviction, or an event of a pod, for example "POST eviction: accepted" or "container app exited
 * with code 143".
 */
export type EvictionStep = ValueOf<typeof step>;
