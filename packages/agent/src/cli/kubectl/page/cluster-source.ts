import type { Cluster } from "../cluster.ts";
import type { Kubectl } from "../kubectl.ts";
import { listNodes } from "./list-nodes.ts";
import { readNodeObject } from "./node-details.ts";
import type { PageSource } from "./page-source.ts";
import { searchPods } from "./search-pods.ts";

export interface ClusterSourceOptions extends Pick<PageSource, "explain"> {
  cluster: Cluster;
  kubectl: Kubectl;
  /** The user's namespace. */
  namespace(): Promise<string>;
}

/** Reads a cluster through kubectl. */
export function clusterSource({ cluster, kubectl, namespace, explain }: ClusterSourceOptions): PageSource {
  return {
    async nodes() {
      const [agents, nodes] = await Promise.all([cluster.agentNodes(), listNodes(kubectl)]);
      const known = new Map(nodes.map((each) => [each.node, each]));
      const names = new Set([...known.keys(), ...agents]);
      return [...names].sort().map((node) => ({ node, ...known.get(node), hasAgent: agents.has(node) }));
    },
    connect: (node) => cluster.connect(node),
    forward: (node) => cluster.forward(node),
    pods: (text, signal) => searchPods(kubectl, text, namespace, signal),
    explain,
    nodeObject: (node) => readNodeObject(kubectl, node),
  };
}
