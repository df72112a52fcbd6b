import type { ApiResource } from "./types.ts";

/** Nodes, which every API server serves in the same way: no agent asks for the description of the whole core group. */
export const nodes: ApiResource = {
  group: "",
  version: "v1",
  kind: "Node",
  plural: "nodes",
  namespaced: false,
  verbs: ["get", "list", "watch", "patch"],
  subresources: ["status"],
};
