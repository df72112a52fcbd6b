/** katalyst's QoS levels; `unknown` is an annotation with any other value. */
export type QosLevel = "reclaimed_cores" | "shared_cores" | "dedicated_cores" | "system_cores" | "unknown";

/** Kubernetes' QoS classes. */
export type QosClass = "BestEffort" | "Burstable" | "Guaranteed";

/** The object that made a pod and would make another: its controller. */
export interface PodOwner {
  kind: string;
  name: string;
  uid: string;
}

/**
 * What eviction has to know of a pod, plain data for records. Values of annotations are left out on purpose: they
 * may be large, and may be nobody's business.
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
  /** `spec.priority`; 0 where absent, as Kubernetes has it. */
  priority: number;
  priorityClassName: string;
  /** Milliseconds since the epoch. */
  deletionTimestamp: number | null;
  /** Milliseconds since the epoch; when the kubelet took the pod. */
  startTime: number | null;
  /** The pod's own, `spec.terminationGracePeriodSeconds`. */
  gracePeriodSeconds: number;
  /** From a manifest on the node, not from the API server. */
  isStatic: boolean;
  /** The API server's image of a static pod. */
  isMirror: boolean;
  /** Asks for notice of soft evictions instead of being evicted by one. */
  softEvictNotify: boolean;
}

/** How records, logs and events name a pod. */
export interface PodReference {
  uid: string;
  namespace: string;
  name: string;
}

export function referenceTo(pod: PodReference): PodReference {
  return { uid: pod.uid, namespace: pod.namespace, name: pod.name };
}
