import { setTimeout as sleep } from "node:timers/promises";
import { customNodeResource, metadata, node, type ReportContent, status } from "@nodekeeper/sdk";

const total = 16;

/** Reports simulated widgets at once and then every `intervalMs`: how many this node has, and how many can be used. */
export async function* widgetReports(
  intervalMs: number,
  signal: AbortSignal,
): AsyncGenerator<ReportContent[]> {
  for (let tick = 0; ; tick++) {
    yield contents(total - (tick % 5));
    await sleep(intervalMs, undefined, { signal });
  }
}

function contents(usable: number): ReportContent[] {
  const widgets = "example.nodekeeper.dev/widgets";
  const capacity = { [widgets]: String(total) };
  const allocatable = { [widgets]: String(usable) };
  const numa = { type: "Numa", name: "0", resources: { capacity, allocatable } };
  return [
    customNodeResource(
      status("resources", { capacity, allocatable }),
      // Merged with what others report of the same zone, as the in-tree kubelet reporter.
      status("topologyZone", [{ type: "Socket", name: "0", children: [numa], resources: {} }]),
    ),
    node(
      metadata("labels", { "example.nodekeeper.dev/has-widgets": "true" }),
      metadata("annotations", { "example.nodekeeper.dev/usable-widgets": String(usable) }),
    ),
  ];
}
