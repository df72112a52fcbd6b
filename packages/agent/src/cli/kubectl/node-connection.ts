import { type AgentConnection, httpConnection } from "../agent-connection.ts";
import type { Forward } from "./kubectl.ts";

export interface NodeConnectionOptions {
  node: string;
  /**
   * Forwards a port to the agent. Called again after the forward ends, for example because the agent's pod was
   * replaced.
   */
  open: () => Promise<Forward>;
}

/** Returns a connection to the agent of a node, through a port-forward that the first request opens. */
export function nodeConnection({ node, open }: NodeConnectionOptions): AgentConnection {
  let forward: Forward | undefined;
  return {
    async get(path, query) {
      if (!forward?.isOpen) forward = await open();
      const connection = httpConnection({
        address: forward.address,
        name: `agent on node ${node}`,
        advice: "Its status server is queried on the node's loopback through kubectl port-forward",
      });
      return await connection.get(path, query);
    },
    [Symbol.dispose]: () => forward?.[Symbol.dispose](),
  };
}
