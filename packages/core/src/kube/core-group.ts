import type { ApiResource } from "./types.ts";

// The resources of the core group are the same on every API server. Predefined so that agents need not discover them.

/** The Node resource. */
export const nodes: ApiResource = {
  group: "",
  version: "v1",
  kind: "Node",
  plural: "nodes",
  namespaced: false,
};

/** The Pod resource. */
export const podResource: ApiResource = {
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  namespaced: true,
};
