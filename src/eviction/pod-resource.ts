import type { ApiResource } from "../kube/index.ts";

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
