import type { Cluster } from "../cluster.ts";
import type { Kubectl } from "../kubectl.ts";
import { listNodes } from "./list-nodes.ts";
import { readNodeObject } from "./node-details.ts";
import type { PageSource } from "./page-source.ts";
import { searchPods } from "./search-pods.ts";

export interface ClusterSourceOptions extends Pick<PageSource, "explainPod" | "explainNode"> {
  cluster: Cluster;
  kubectl: Kubectl;
  /** The user's namespace. */
  namespace(): Promise<string>;
}

/** Reads a cluster through kubectl. */
export function clusterSource(options: ClusterSourceOptions): PageSource {
  const { cluster, kubectl, namespace, explainPod, explainNode } = options;
  return {
    async nodes() {
      const [agents, objects] = await Promise.all([cluster.agentNodes(), listNodes(kubectl)]);
      const known = new Map(objects.map((each) => [each.node, each]));
      const names = new Set([...known.keys(), ...agents]);
      const nodes = [...names].map((node) => ({ node, ...known.get(node), hasAgent: agents.has(node) }));
      return { nodes };
    },
    connect: (node) => cluster.connect(node),
    forward: (node) => cluster.forward(node),
    pods: (text, signal) => searchPods(kubectl, text, namespace, signal),
    explainPod,
    explainNode,
    nodeObject: (node) => readNodeObject(kubectl, node),
  };
}
