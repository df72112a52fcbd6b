import type { FleetNode } from "@nodekeeper/api/fleet";
import { codeOf } from "@nodekeeper/core/lib";
import type { Kubectl } from "../kubectl.ts";

/** A Node object. */
export type NodeState = Pick<FleetNode, "node" | "condition" | "isCordoned">;

const FIELDS = [
  "{.metadata.name}",
  '{.status.conditions[?(@.type=="Ready")].status}',
  "{.spec.unschedulable}",
].join('{"\\t"}');

/** Lists the Nodes. Returns undefined without the permission to list them. Throws as `Kubectl.run`. */
export async function listNodes(kubectl: Kubectl): Promise<NodeState[] | undefined> {
  try {
    const output = `jsonpath={range .items[*]}${FIELDS}{"\\n"}{end}`;
    return (await kubectl.run(["get", "nodes", "--output", output])).split("\n").flatMap(nodeOf);
  } catch (error) {
    if (codeOf(error) === "forbidden") return undefined;
    throw error;
  }
}

const conditions: Readonly<Record<string, NodeState["condition"]>> = {
  True: "Ready",
  False: "NotReady",
};

function nodeOf(line: string): NodeState[] {
  const [node = "", status = "", unschedulable] = line.split("\t");
  if (node === "") return [];
  return [{ node, condition: conditions[status] ?? "Unknown", isCordoned: unschedulable === "true" }];
}
