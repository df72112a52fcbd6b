import * as s from "./schema.ts";

// Pods as eviction sees them.

export const reference = { uid: s.text(), namespace: s.text(), name: s.text() };

export const podReference = s.named("PodReference", s.object(reference));

export const qosLevel = s.oneOf(
  ["reclaimed_cores", "shared_cores", "dedicated_cores", "system_cores", "unknown"],
  "katalyst's QoS level; `unknown` for any other value of the annotation.",
);
export const qosClass = s.oneOf(["BestEffort", "Burstable", "Guaranteed"]);

const podFields = {
  ...reference,
  nodeName: s.text(),
  phase: s.text(),
  owner: s.nullable(
    s.object(
      { kind: s.text(), name: s.text(), uid: s.text() },
      "Its controller: the owner reference with `controller: true`.",
    ),
  ),
  qosLevel,
  qosClass,
  priority: s.number("`spec.priority`; 0, the default of Kubernetes, if it is not set."),
  priorityClassName: s.text(),
  deletionTimestamp: s.nullable(s.time()),
  startTime: s.nullable(s.time("When the kubelet acknowledged the pod.")),
  gracePeriodSeconds: s.number("`spec.terminationGracePeriodSeconds`."),
  isStatic: s.flag("Whether it comes from a manifest on the node, not from the API server."),
  isMirror: s.flag("Whether it is the mirror pod of a static pod."),
  softEvictNotify: s.flag(
    "Whether it is annotated to be notified of soft evictions instead of being evicted.",
  ),
};

/** A pod in the history, without labels and annotations. */
export const strippedPod = s.object(podFields);

export const evictionPod = s.named(
  "EvictionPod",
  s.object(
    { ...podFields, labels: s.map(s.text()), annotationKeys: s.list(s.text(), "Sorted.") },
    "What eviction reads of a pod. Values of annotations are never kept.",
  ),
);
