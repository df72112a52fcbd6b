import { refusalReasons } from "../reasons/index.ts";
import type { Decision } from "./decision.ts";
import { type EvictionPod, referenceTo } from "./pods.ts";
import type { SkipRules } from "./policy.ts";

/** A pod that is not offered to plugins and not evicted. */
export type Exclusion = Decision["exclusions"][number];

/** Why a pod is not a candidate. */
export type ExclusionReason = Exclusion["reason"];

export interface Selection {
  /** Sorted by UID. */
  candidates: EvictionPod[];
  /** Sorted by UID. */
  exclusions: Exclusion[];
}

// Pods of this priority and above are critical: kubernetes pkg/apis/scheduling/types.go, SystemCriticalPriority.
const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;
const criticalClasses: readonly string[] = ["system-node-critical", "system-cluster-critical"];

/** Splits the pods of a node into candidates and excluded pods, each of these with the reason. Pure. */
export function selectCandidates(
  pods: readonly EvictionPod[],
  nodeName: string,
  rules: SkipRules,
): Selection {
  const candidates: EvictionPod[] = [];
  const exclusions: Exclusion[] = [];
  for (const pod of [...pods].sort((a, b) => (a.uid < b.uid ? -1 : 1))) {
    const found = exclusionOf(pod, nodeName, rules);
    if (found === null) candidates.push(pod);
    else exclusions.push({ ...referenceTo(pod), ...found });
  }
  return { candidates, exclusions };
}

// Protections set by the system are checked before those that a pod's author can set, such as labels.
function exclusionOf(
  pod: EvictionPod,
  nodeName: string,
  rules: SkipRules,
): Pick<Exclusion, "reason" | "detail"> | null {
  if (pod.nodeName !== nodeName) return because("otherNode", pod.nodeName || "no node");
  if (pod.phase === "Succeeded" || pod.phase === "Failed") return because("finished", pod.phase);
  if (pod.deletionTimestamp !== null) return because("terminating");
  if (pod.isMirror) return because("mirror");
  if (pod.isStatic) return because("static");
  if (pod.priority >= SYSTEM_CRITICAL_PRIORITY) return because("critical", `priority ${pod.priority}`);
  if (criticalClasses.includes(pod.priorityClassName)) return because("critical", pod.priorityClassName);
  if (pod.qosLevel === "system_cores") return because("systemQos");
  if (pod.owner?.kind === "DaemonSet" && !rules.evictDaemonSetPods)
    return because("daemonSet", pod.owner.name);

  const label = rules.labelKeys.find((key) => Object.hasOwn(pod.labels, key));
  if (label !== undefined) return because("skipLabel", `label ${label}`);
  const annotation = rules.annotationKeys.find((key) => pod.annotationKeys.includes(key));
  if (annotation !== undefined) return because("skipAnnotation", `annotation ${annotation}`);
  return null;
}

function because(reason: ExclusionReason, detail: string = refusalReasons[reason]) {
  return { reason, detail };
}
