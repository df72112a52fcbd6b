import type { PodReference } from "@nodekeeper/api/decide";
import type { ApiResource, ObjectReference } from "@nodekeeper/core/kube";

/** The pods resource. Every API server serves it, so evictions need no discovery. */
export const podResource: ApiResource = {
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  namespaced: true,
  verbs: ["get", "list", "watch", "delete"],
  subresources: ["eviction"],
};

/** Returns the reference to a pod for an Event. */
export function aboutPod({ uid, namespace, name }: PodReference): ObjectReference {
  return { apiVersion: "v1", kind: "Pod", namespace, name, uid };
}
