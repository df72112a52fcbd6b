import type { NodePod } from "../records/index.ts";

/**
 * Formats the properties of a pod that eviction ranks by, in one line: "shared_cores, Burstable, priority 0, grace
 * period 30 s, of ReplicaSet web-6d4".
 */
export function podText(pod: NodePod["pod"]): string {
  const { qosLevel, qosClass, priority, priorityClassName, gracePeriodSeconds, owner } = pod;
  const className = priorityClassName ? ` (${priorityClassName})` : "";
  const of = owner ? `, of ${owner.kind} ${owner.name}` : "";
  return `${qosLevel}, ${qosClass}, priority ${priority}${className}, grace period ${gracePeriodSeconds} s${of}`;
}
