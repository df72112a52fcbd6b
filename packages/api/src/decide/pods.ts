import type { evictionPod, podReference, ValueOf } from "../openapi/index.ts";

/**
 * The fields of a pod that eviction reads and records, as plain JSON. Annotation values are omitted because they may be
 * large or confidential.
 */
export type EvictionPod = ValueOf<typeof evictionPod>;

/** katalyst's QoS levels. `unknown` stands for any other value of the annotation. */
export type QosLevel = EvictionPod["qosLevel"];

/** The QoS classes of Kubernetes. */
export type QosClass = EvictionPod["qosClass"];

/** A pod's controller: the owner reference with `controller: true`. */
export type PodOwner = NonNullable<EvictionPod["owner"]>;

/** The reference to a pod in records, logs and Events. */
export type PodReference = ValueOf<typeof podReference>;

export function referenceTo(pod: PodReference): PodReference {
  return { uid: pod.uid, namespace: pod.namespace, name: pod.name };
}
