/** katalyst's QoS levels; `unknown` is an annotation with any other value. */
export type QosLevel = "reclaimed_cores" | "shared_cores" | "dedicated_cores" | "system_cores" | "unknown";

/** Kubernetes' QoS classes. */
export type QosClass = "BestEffort" | "Burstable" | "Guaranteed";

/** A pod's controller: the owner reference with `controller: true`. */
export interface PodOwner {
  kind: string;
  name: string;
  uid: string;
}

/**
 * The fields of a pod that eviction reads and records: plain JSON. Values of annotations are left out, because they may
 * be large or confidential.
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
  /** `spec.priority`; 0 where absent, the default of Kubernetes. */
  priority: number;
  priorityClassName: string;
  /** Milliseconds since the epoch. */
  deletionTimestamp: number | null;
  /** `status.startTime`, milliseconds since the epoch: when the kubelet acknowledged the pod. */
  startTime: number | null;
  /** `spec.terminationGracePeriodSeconds`. */
  gracePeriodSeconds: number;
  /** From a manifest on the node, not from the API server. */
  isStatic: boolean;
  /** Whether it is the mirror pod of a static pod. */
  isMirror: boolean;
  /** Annotated to be notified of soft evictions instead of being evicted by one. */
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
