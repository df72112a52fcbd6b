/** katalyst's QoS levels. `unknown` stands for any other value of the annotation. */
export type QosLevel = "reclaimed_cores" | "shared_cores" | "dedicated_cores" | "system_cores" | "unknown";

/** The QoS classes of Kubernetes. */
export type QosClass = "BestEffort" | "Burstable" | "Guaranteed";

/** A pod's controller: the owner reference with `controller: true`. */
export interface PodOwner {
  kind: string;
  name: string;
  uid: string;
}

/**
 * The fields of a pod that eviction reads and records, as plain JSON. Annotation values are omitted because they may be
 * large or confidential.
 */
export interface EvictionPod {
  uid: string;
  namespace: string;
  name: string;
  nodeName: string;
  phase: string;
  labels: Record<string, string>;
  /** Sorted. */
  annotationKeys: string[];
  owner: PodOwner | null;
  qosLevel: QosLevel;
  qosClass: QosClass;
  /** `spec.priority`; 0, the default of Kubernetes, if it is not set. */
  priority: number;
  priorityClassName: string;
  /** Milliseconds since the epoch. */
  deletionTimestamp: number | null;
  /** `status.startTime`, milliseconds since the epoch: when the kubelet acknowledged the pod. */
  startTime: number | null;
  /** `spec.terminationGracePeriodSeconds`. */
  gracePeriodSeconds: number;
  /** Whether it comes from a manifest on the node, not from the API server. */
  isStatic: boolean;
  /** Whether it is the mirror pod of a static pod. */
  isMirror: boolean;
  /** Whether the pod is annotated to be notified of soft evictions instead of being evicted by one. */
  softEvictNotify: boolean;
}

/** The reference to a pod in records, logs and Events. */
export interface PodReference {
  uid: string;
  namespace: string;
  name: string;
}

export function referenceTo(pod: PodReference): PodReference {
  return { uid: pod.uid, namespace: pod.namespace, name: pod.name };
}
