import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { KubeApiClient } from "@nodekeeper/core/kube";
import { type Clock, codeOf, messageWithId, retryAfterOf } from "@nodekeeper/core/lib";
import { FIELD_MANAGER } from "../assembly/index.ts";
import { releaseSlices } from "../devices/index.ts";
import { releaseNode } from "../eviction/index.ts";
import { kindPolicies, releaseObject } from "../reporting/index.ts";

/** The result of cleaning one node. */
export interface NodeResult {
  node: string;
  /** What was removed: "Node metadata.labels.example.com/gpus", "ResourceSlice worker-1-gpu-x". */
  removed: string[];
  /** Why nothing or not all of it was removed. */
  error?: string;
}

const ATTEMPTS = 5;
const THROTTLED_MS = 1_000;

interface Cleaning {
  nodeName: string;
  /** Whether to write nothing. */
  isDryRun: boolean;
  clock: Clock;
  signal: AbortSignal;
}

interface Step {
  kind: string;
  /** Removes the agent's content from objects of the kind. Yields each removed field or object after its removal. */
  release(): AsyncGenerator<string, void>;
}

/**
 * Removes the taints, fields and conditions that a node's agent set on the Node, the fields that it set on other
 * objects of the node, and its ResourceSlices. Failures are part of the result; the remaining steps still run, unless
 * the signal has aborted. Never throws.
 */
export async function cleanNode(
  client: KubeApiClient,
  cleaning: Cleaning,
  { reporting }: AgentConfiguration,
): Promise<NodeResult> {
  const options = { ...cleaning, client, fieldManager: FIELD_MANAGER };
  const steps: readonly Step[] = [
    { kind: "Node", release: () => releaseNode(options) },
    ...[...kindPolicies(reporting.additionalKinds).values()].map((policy) => ({
      kind: policy.kind.kind,
      async *release() {
        const resource = await client.resolve(policy.kind, { signal: cleaning.signal });
        if (resource) yield* releaseObject(resource, policy, options);
      },
    })),
    { kind: "ResourceSlice", release: () => releaseSlices(options) },
  ];
  const result: NodeResult = { node: cleaning.nodeName, removed: [] };
  for (const step of steps) {
    try {
      await withAttempts(cleaning, async () => {
        for await (const what of step.release()) result.removed.push(`${step.kind} ${what}`);
      });
    } catch (error) {
      result.error = result.error ? `${result.error}; ${messageWithId(error)}` : messageWithId(error);
      if (cleaning.signal.aborted) break;
    }
  }
  return result;
}

/** Removes the ResourceSlices of pools beyond the nodes, which no node's agent owns. As `cleanNode`. */
export async function cleanCluster(
  client: KubeApiClient,
  cleaning: Omit<Cleaning, "nodeName">,
): Promise<Omit<NodeResult, "node">> {
  const removed: string[] = [];
  try {
    await withAttempts(cleaning, async () => {
      for await (const name of releaseSlices({ ...cleaning, client, nodeName: undefined }))
        removed.push(`ResourceSlice ${name}`);
    });
  } catch (error) {
    return { removed, error: messageWithId(error) };
  }
  return { removed };
}

/** Tries again if the object was changed meanwhile, or once the server accepts requests again. */
async function withAttempts(
  { clock, signal }: Omit<Cleaning, "nodeName">,
  step: () => Promise<void>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await step();
    } catch (error) {
      const code = codeOf(error);
      if (!["conflict", "throttled"].includes(code) || attempt === ATTEMPTS) throw error;
      if (code === "throttled") await clock.sleep(Math.max(retryAfterOf(error), THROTTLED_MS), signal);
    }
  }
}
