import { counted } from "@nodekeeper/api/wording";
import { NodekeeperError, systemClock } from "@nodekeeper/core/lib";
import type { Output } from "../../output.ts";
import { fleetFiles } from "./fleet-files.ts";
import { FleetReader } from "./fleet-reader.ts";
import { readDetails } from "./node-details.ts";
import { NodePages } from "./node-pages.ts";
import { PageServer } from "./page-server.ts";
import type { PageSource } from "./page-source.ts";

export interface PageOptions {
  source: PageSource;
  /** Maximum number of agents queried concurrently. */
  parallel: number;
  /** 0: a free one. */
  port: number;
  output: Output;
  /** Ends it. */
  signal: AbortSignal;
}

/** `kubectl nodekeeper page`: serves the page of all nodes until Ctrl-C. Throws if the nodes can't be listed. */
export async function pageCommand(options: PageOptions): Promise<void> {
  const { source, parallel, port, output, signal } = options;
  const reader = new FleetReader({ source, clock: systemClock, parallel });
  const pages = new NodePages({ forward: (node) => source.forward(node), clock: systemClock });
  const checkNode = (node: string) => {
    if (!reader.has(node)) throw new NodekeeperError("notFound", `there is no node ${node}`);
  };
  const server = new PageServer(fleetFiles(), {
    fleet: (state) => reader.update(state),
    async nodePage(node) {
      checkNode(node);
      return await pages.address(node);
    },
    pods: (text, scope) => source.pods(text, scope),
    explainPod: async (pod, node) => ({ text: await source.explainPod(pod, node) }),
    explainNode: async (node) => ({ text: await source.explainNode(node) }),
    async details(node) {
      checkNode(node);
      using agent = await source.connect(node);
      return await readDetails(node, agent, () => source.nodeObject(node));
    },
  });
  const nodes = await reader.list();
  const address = await server.start(port);
  output.write(`Page of ${counted(nodes, "node")}: ${address}\n`);
  output.write("The link works once, for you alone. To stop, press Ctrl-C.\n");
  try {
    await reader.run(signal);
  } finally {
    server.stop();
    pages.stop();
  }
}
