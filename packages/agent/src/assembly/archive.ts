import { nodes } from "@nodekeeper/core/kube";
import type { AgentContext } from "./context.ts";
import type { AgentPart } from "./part.ts";

/** Builds the export of records. Undefined if it is not configured: nothing of it is loaded then. */
export async function archivePart(context: AgentContext): Promise<AgentPart | undefined> {
  const { configuration, client, log } = context;
  const { archive, nodeName } = configuration();
  if (archive.endpoint === "") return undefined;
  const { createArchive } = await import("../archive/index.ts");
  const exporter = createArchive({
    ...context,
    settings: archive,
    recordSettings: () => configuration().eviction.records,
    nodeName,
    nodeUid: async (signal) => (await client.get(nodes, nodeName, { signal })).metadata.uid,
    log: log.child({ logger: "archive" }),
  });
  return { runnables: [exporter], checks: [exporter.healthCheck()], routes: [] };
}
