import type { ApiResource, ObjectReference } from "@nodekeeper/core/kube";
import type { PodReference } from "../decide/pods.ts";

/** The resource of pods, which every API server serves: evictions need no discovery. */
export const podResource: ApiResource = {
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  namespaced: true,
  verbs: ["get", "list", "watch", "delete"],
  subresources: ["eviction"],
};

/** The reference to a pod in an Event. */
export function aboutPod({ uid, namespace, name }: PodReference): ObjectReference {
  return { apiVersion: "v1", kind: "Pod", namespace, name, uid };
}
