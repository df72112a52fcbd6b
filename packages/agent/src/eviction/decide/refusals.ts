/** Why a pod that a plugin asked for does not go, in the order in which it is looked at. */
export const refusalReasons = {
  unknownPod: "no pod of this node has this UID",
  nameMismatch: "the pod with this UID has another name",
  otherNode: "the pod runs on another node",
  finished: "the pod has finished",
  terminating: "the pod is terminating already",
  mirror: "mirror pods are not evicted",
  static: "static pods are not evicted",
  critical: "pods with a critical priority are not evicted",
  systemQos: "pods of the QoS level system_cores are not evicted",
  daemonSet: "pods of DaemonSets are not evicted",
  skipLabel: "the pod has a label that protects it",
  skipAnnotation: "the pod has an annotation that protects it",
  overTopN: "the plugin named more pods than it was asked for, and this one is not the least important",
  dryRun: "the plugin is in dry run",
  pending: "its eviction is under way already",
  paused: "its eviction failed a short while ago",
  notifyOnly: "the pod is annotated for notice of soft evictions: it is notified, not evicted",
  pendingRelease: "an earlier victim of the same pressure is still terminating",
  cooldown: "the same pressure took a victim a short while ago",
  nodeLimit: "the node has lost as many pods as it may for now",
  namespaceLimit: "the namespace has lost as many pods as it may for now",
  ownerLimit: "the pod's owner has lost as many pods as it may for now",
  notLeastImportant: "one pod is softly evicted each round, and another pod is less important",
  overBurst: "the round's burst is used up: the pod waits",
} as const;

export type RefusalReason = keyof typeof refusalReasons;
