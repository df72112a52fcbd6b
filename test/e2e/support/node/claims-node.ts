import type { AgentProcess } from "../agent-process.ts";
import { type ControlPlane, startControlPlane } from "../control-plane.ts";
import { type ClusterNode, type NodeOptions, startNode } from "../node.ts";
import { installOptionalRights } from "../nodekeeper-install.ts";

/** A cluster of one node, on which the agent prepares claims for the kubelet. */
export interface ClaimsNode {
  readonly cluster: ControlPlane;
  readonly node: ClusterNode;
  readonly agent: AgentProcess;
  /** Stops all of it. */
  stop(): Promise<void>;
}

/** Starts it with the optional rights that claims need, and waits until the agent is ready. */
export async function startClaimsNode({
  flags = {},
  ...options
}: Pick<NodeOptions, "containerd"> & { flags?: Record<string, string> } = {}): Promise<ClaimsNode> {
  const ends: Array<() => unknown> = [];
  const stop = async () => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    const cluster = await startControlPlane();
    ends.push(() => cluster.stop());
    await installOptionalRights(cluster);
    const node = await startNode(cluster, options);
    ends.push(() => node.stop());
    const agent = await node.startAgent({ "devices-kubelet-plugin-enabled": "true", ...flags });
    ends.push(() => agent.child.stop());
    await agent.ready();
    return { cluster, node, agent, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
