import type { ApiResource, ObjectReference } from "@nodekeeper/core/kube";
import type { PodReference } from "../decide/pods.ts";

/** Pods as every API server serves them: no discovery is needed to evict one. */
export const podResource: ApiResource = {
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  namespaced: true,
  verbs: ["get", "list", "watch", "delete"],
  subresources: ["eviction"],
};

/** How an Event names a pod. */
export function aboutPod({ uid, namespace, name }: PodReference): ObjectReference {
  return { apiVersion: "v1", kind: "Pod", namespace, name, uid };
}
