import { type AgentConnection, httpConnection } from "../agent-connection.ts";
import type { Forward } from "./kubectl.ts";

export interface NodeConnectionOptions {
  node: string;
  /** Forwards a port to the agent; called again after a forward has ended, as when the agent's pod is replaced. */
  open: () => Promise<Forward>;
}

/** A connection to the agent of a node, through a port-forward that is opened with the first request. */
export function nodeConnection({ node, open }: NodeConnectionOptions): AgentConnection {
  let forward: Forward | undefined;
  return {
    async get(path, query) {
      if (!forward?.isOpen) forward = await open();
      const connection = httpConnection({
        address: forward.address,
        name: `agent on node ${node}`,
        advice:
          "It is asked at its status server's port on the node's loopback, through kubectl port-forward",
      });
      return await connection.get(path, query);
    },
    [Symbol.dispose]: () => forward?.[Symbol.dispose](),
  };
}
