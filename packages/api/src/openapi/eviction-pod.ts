import { flag, list, map, named, nullable, number, object, oneOf, text, time } from "./schema.ts";

// Pods as eviction sees them.

export const reference = { uid: text(), namespace: text(), name: text() };

export const podReference = named("PodReference", object(reference));

export const qosLevel = oneOf(
  ["reclaimed_cores", "shared_cores", "dedicated_cores", "system_cores", "unknown"],
  "katalyst's QoS level; `unknown` for any other value of the annotation.",
);
export const qosClass = oneOf(["BestEffort", "Burstable", "Guaranteed"]);

const podFields = {
  ...reference,
  nodeName: text(),
  phase: text(),
  owner: nullable(
    object(
      { kind: text(), name: text(), uid: text() },
      "Its controller: the owner reference with `controller: true`.",
    ),
  ),
  qosLevel,
  qosClass,
  priority: number("`spec.priority`; 0, the default of Kubernetes, if it is not set."),
  priorityClassName: text(),
  deletionTimestamp: nullable(time()),
  startTime: nullable(time("When the kubelet acknowledged the pod.")),
  gracePeriodSeconds: number("`spec.terminationGracePeriodSeconds`."),
  isStatic: flag("Whether it comes from a manifest on the node, not from the API server."),
  isMirror: flag("Whether it is the mirror pod of a static pod."),
  softEvictNotify: flag("Whether it is annotated to be notified of soft evictions instead of being evicted."),
};

/** A pod in the history, without labels and annotations. */
export const strippedPod = object(podFields);

export const evictionPod = named(
  "EvictionPod",
  object(
    { ...podFields, labels: map(text()), annotationKeys: list(text(), "Sorted.") },
    "What eviction reads of a pod. Values of annotations are never kept.",
  ),
);
