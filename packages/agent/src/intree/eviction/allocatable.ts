import type { KubeClient, KubeObject } from "@nodekeeper/core/kube";
import { type Clock, codeOf, RecentWork, toNodekeeperError } from "@nodekeeper/core/lib";
import type { Reading } from "../../host/index.ts";
import { customNodeResource } from "../../reporting/index.ts";
import type { ResourceListReader } from "./in-tree-plugin.ts";

// Of a request to the API server.
const DEADLINE_MS = 3_000;

export interface AllocatableOptions {
  client: Pick<KubeClient, "resolve" | "get">;
  nodeName: string;
  clock: Clock;
  /** How long a reading is cached, milliseconds. Default 10000. */
  maxAgeMs?: number;
}

/** Reads status.resources.allocatable of this node's CustomNodeResource from the API server. */
export function customNodeResourceAllocatable(options: AllocatableOptions): ResourceListReader {
  const { clock, maxAgeMs = 10_000 } = options;
  const shared = new RecentWork(
    clock,
    () => maxAgeMs,
    () => readAllocatable(options),
  );
  return (signal) => shared.get(signal);
}

async function readAllocatable(options: AllocatableOptions): Promise<Reading<Record<string, string>>> {
  const { client, nodeName, clock } = options;
  const at = clock.monotonic();
  try {
    const resource = await client.resolve(customNodeResource, { deadlineMs: DEADLINE_MS });
    if (!resource)
      return { state: "missing", at, message: "the API server does not serve CustomNodeResources" };
    const allocatable = allocatableOf(await client.get(resource, nodeName, { deadlineMs: DEADLINE_MS }));
    if (allocatable) return { state: "read", at, value: allocatable, problems: [] };
    return {
      state: "missing",
      at,
      message: `CustomNodeResource ${nodeName} has no status.resources.allocatable`,
    };
  } catch (error) {
    if (codeOf(error) === "notFound") {
      return { state: "missing", at, message: `CustomNodeResource ${nodeName} does not exist` };
    }
    return { state: "failed", at, error: toNodekeeperError(error) };
  }
}

// An empty list counts as missing: a node without reclaimable resources reports 0.
function allocatableOf({ status }: KubeObject): Record<string, string> | undefined {
  const list = (status as { resources?: { allocatable?: unknown } } | undefined)?.resources?.allocatable;
  if (typeof list !== "object" || list === null) return undefined;
  const texts = Object.entries(list).flatMap(([name, amount]) =>
    typeof amount === "string" || typeof amount === "number" ? [[name, String(amount)] as const] : [],
  );
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}
