import type { FleetNode, FoundPods, NodeDetails } from "@nodekeeper/api/fleet";
import type { AgentConnection } from "../../agent-connection.ts";
import type { Forward } from "../kubectl.ts";

/** A node from the API server or, if it no longer exists, from the archive. */
export type ListedNode = Pick<FleetNode, "node" | "condition" | "isCordoned" | "hasAgent" | "archived">;

/** The nodes of a cluster. */
export interface ListedNodes {
  nodes: ListedNode[];
  /** Why nodes that are gone can't be listed. */
  archiveProblem?: string;
}

/** The data of the page of all nodes. Everything is read with the user's own permissions. */
export interface PageSource {
  /** Lists the nodes and their agents anew, and those of the archive that are gone. */
  nodes(): Promise<ListedNodes>;
  /** Connects to the agent of a node. The first request opens the connection. */
  connect(node: string): Promise<AgentConnection>;
  /** Forwards a local port to the status server of a node's agent. */
  forward(node: string): Promise<Forward>;
  /** Finds pods by a part of "namespace/name" or by UID. */
  pods(text: string, signal: AbortSignal): Promise<FoundPods>;
  /** Returns the text of `explain pod`, by the agent of the node if it is given. Throws `notFound`, `unavailable`. */
  explainPod(pod: string, node: string | undefined): Promise<string>;
  /** Returns the text of `explain node`. Throws as `explainPod`. */
  explainNode(node: string): Promise<string>;
  /** Reads versions and capacity of a Node object; empty if that is not permitted. */
  nodeObject(node: string): Promise<NodeDetails["object"]>;
}
