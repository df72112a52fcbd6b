import type { EvictionPod, PodOwner } from "@nodekeeper/api/decide";
import type { Pod, Time } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { qosClassOf } from "./qos-class.ts";
import type { QosLevelReader } from "./qos-level.ts";

const configSource = "kubernetes.io/config.source";
const configMirror = "kubernetes.io/config.mirror";
const softEvictNotifyKey = "katalyst.kubewharf.io/pod_soft_evict_notify";

/** The API server's default of `terminationGracePeriodSeconds`, seconds. */
const DEFAULT_GRACE_SECONDS = 30;

/** Reads the fields of a pod that eviction needs. Throws `invalid` for a pod without UID or name. */
export function readPod(pod: Pod, qosLevelOf: QosLevelReader): EvictionPod {
  const { metadata, spec, status } = pod;
  if (!metadata?.uid || !metadata.name) {
    throw new NodekeeperError(
      "invalid",
      `a pod ${metadata?.namespace}/${metadata?.name} has no UID or no name`,
    );
  }
  const { annotations } = metadata;
  const controller = metadata.ownerReferences.find((owner) => owner.controller);
  return {
    uid: metadata.uid,
    namespace: metadata.namespace,
    name: metadata.name,
    nodeName: spec?.nodeName ?? "",
    phase: status?.phase ?? "",
    labels: metadata.labels,
    annotationKeys: Object.keys(annotations).sort(),
    owner: controller === undefined ? null : ownerOf(controller),
    qosLevel: qosLevelOf(annotations),
    qosClass: qosClassOf(pod),
    priority: spec?.priority ?? 0,
    priorityClassName: spec?.priorityClassName ?? "",
    deletionTimestamp: millisecondsOf(metadata.deletionTimestamp),
    startTime: millisecondsOf(status?.startTime),
    gracePeriodSeconds: Number(spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS),
    isStatic: (annotations[configSource] ?? "api") !== "api",
    isMirror: annotations[configMirror] !== undefined,
    softEvictNotify: annotations[softEvictNotifyKey]?.toLowerCase() === "true",
  };
}

function ownerOf({ kind, name, uid }: PodOwner): PodOwner {
  return { kind, name, uid };
}

function millisecondsOf(time: Time | undefined): number | null {
  return time === undefined ? null : Number(time.seconds) * 1000 + Math.trunc(time.nanos / 1e6);
}
