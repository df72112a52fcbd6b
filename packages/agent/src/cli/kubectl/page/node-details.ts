import type { NodeDetails } from "@nodekeeper/api/fleet";
import { codeOf } from "@nodekeeper/core/lib";
import type { AgentConnection } from "../../agent-connection.ts";
import type { Kubectl } from "../kubectl.ts";

/**
 * Returns the data of a node for comparison with other nodes. Throws as `AgentConnection.get` and `object`.
 * @param object reads versions and capacity of the Node
 */
export async function readDetails(
  node: string,
  agent: AgentConnection,
  object: () => Promise<NodeDetails["object"]>,
): Promise<NodeDetails> {
  const [version, configuration, plugins, found] = await Promise.all([
    agent.get("version"),
    agent.get("configuration"),
    agent.get("plugins"),
    object(),
  ]);
  return { node, object: found, agent: version, configuration, plugins };
}

interface NodeObject {
  status?: { nodeInfo?: Record<string, string>; capacity?: Record<string, string> };
}

/** Versions of a node's software, by its Node object. */
const versions = ["kubeletVersion", "containerRuntimeVersion", "kernelVersion", "osImage", "architecture"];

/** Reads versions and capacity of a Node object. Returns none without the right to get it, or if there is none. */
export async function readNodeObject(kubectl: Kubectl, node: string): Promise<NodeDetails["object"]> {
  try {
    const { status = {} } = JSON.parse(
      await kubectl.run(["get", "node", node, "--output", "json"]),
    ) as NodeObject;
    const { nodeInfo = {}, capacity = {} } = status;
    return Object.fromEntries([
      ...versions.flatMap((name) => (nodeInfo[name] === undefined ? [] : [[name, nodeInfo[name]] as const])),
      ...Object.entries(capacity).map(([name, value]) => [`capacity.${name}`, value] as const),
    ]);
  } catch (error) {
    if (["forbidden", "notFound"].includes(codeOf(error))) return {};
    throw error;
  }
}
