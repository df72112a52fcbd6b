import type { EvictionPod, PodOwner, QosClass } from "@nodekeeper/api/decide";
import type { Pod, ResourceRequirements, Time } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { isQuantity, NodekeeperError, parseQuantity } from "@nodekeeper/core/lib";
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

const computeResources = ["cpu", "memory"] as const;

/** Positive amounts in nanos by "cpu" and "memory"; no entry if not specified. */
type Amounts = Map<string, bigint>;

/**
 * Returns the QoS class of a pod: the one in its status; otherwise computed from the requests and limits for CPU and
 * memory, at pod level if set (KEP-2837), otherwise of its containers and init containers.
 * https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/
 */
export function qosClassOf(pod: Pod): QosClass {
  const stated = pod.status?.qosClass;
  if (stated === "BestEffort" || stated === "Burstable" || stated === "Guaranteed") return stated;
  const { containers = [], initContainers = [], resources } = pod.spec ?? {};
  if (resources !== undefined) return classOf([resources]);
  return classOf([...containers, ...initContainers].map((container) => container.resources));
}

function classOf(all: readonly (ResourceRequirements | undefined)[]): QosClass {
  const requests: Amounts = new Map();
  const limits: Amounts = new Map();
  let allLimited = true;
  for (const resources of all) {
    addAmounts(requests, resources?.requests);
    const limited = addAmounts(limits, resources?.limits);
    allLimited &&= limited === computeResources.length;
  }
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  const isEqual =
    requests.size === limits.size && [...requests].every(([name, amount]) => limits.get(name) === amount);
  return allLimited && isEqual ? "Guaranteed" : "Burstable";
}

// Returns the number of compute resources in the list.
function addAmounts(total: Amounts, list: ResourceRequirements["requests"] = {}): number {
  let stated = 0;
  for (const name of computeResources) {
    const text = list[name]?.string;
    const amount = isQuantity(text) ? parseQuantity(text).nano : 0n;
    if (amount <= 0n) continue;
    total.set(name, (total.get(name) ?? 0n) + amount);
    stated++;
  }
  return stated;
}
