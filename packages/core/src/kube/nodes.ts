import type { ApiResource } from "./types.ts";

/**
 * The Node resource, which is the same on every API server. Predefined so that agents need not discover the core group.
 */
export const nodes: ApiResource = {
  group: "",
  version: "v1",
  kind: "Node",
  plural: "nodes",
  namespaced: false,
  verbs: ["get", "list", "watch", "patch"],
  subresources: ["status"],
};
