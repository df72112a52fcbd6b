/** Why a requested pod is not evicted, in the order of the checks. The keys are stored in records. */
export const refusalReasons = {
  unknownPod: "no pod of this node has this UID",
  nameMismatch: "the pod with this UID has another name",
  otherNode: "the pod runs on another node",
  finished: "the pod has finished",
  terminating: "the pod is already terminating",
  mirror: "mirror pods are not evicted",
  static: "static pods are not evicted",
  critical: "pods with a critical priority are not evicted",
  systemQos: "pods with QoS level system_cores are not evicted",
  daemonSet: "pods of DaemonSets are not evicted",
  skipLabel: "the pod has a label that protects it",
  skipAnnotation: "the pod has an annotation that protects it",
  overTopN: "the plugin named more pods than requested, and this one does not rank lowest",
  triedLast:
    "a recent eviction of this pod, or of one with the same PodDisruptionBudget, failed: other pods are tried first",
  dryRun: "the plugin is in dry run",
  pending: "its eviction is already in progress",
  stopped: "its containers were stopped, or may have been, by its eviction since the last round",
  paused: "its last eviction attempt failed",
  notifyOnly: "the pod is annotated to be notified of soft evictions, not evicted",
  pendingRelease: "the eviction of an earlier victim of the same threshold has not ended",
  cooldown: "cooldown after the last eviction for the same threshold",
  nodeLimit: "limit of evictions on this node reached",
  namespaceLimit: "limit of evictions per namespace reached",
  ownerLimit: "limit of evictions per owner reached",
  notLeastImportant: "ranked higher",
  overBurst: "burst limit of this round reached: the pod is queued",
} as const;

export type RefusalReason = keyof typeof refusalReasons;
