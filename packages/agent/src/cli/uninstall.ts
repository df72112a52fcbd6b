import { AgentStillRuns } from "@nodekeeper/api/errors";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import { counted } from "@nodekeeper/api/wording";
import {
  createKubeClient,
  createKubeMetrics,
  type KubeApiClient,
  loadClusterAccess,
  nodes,
  textOf,
} from "@nodekeeper/core/kube";
import {
  type Clock,
  codeOf,
  messageWithId,
  NodekeeperError,
  Registry,
  silentLogger,
} from "@nodekeeper/core/lib";
import { FIELD_MANAGER } from "../assembly/index.ts";
import { loadConfiguration } from "../config/index.ts";
import { releaseSlices } from "../devices/index.ts";
import { podResource, releaseNode } from "../eviction/index.ts";
import { kindPolicies, releaseObject } from "../reporting/index.ts";
import { DirectoryLock } from "../state/index.ts";
import type { CommandRun } from "./follow.ts";
import { type PageFormat, printAs } from "./output.ts";
import { configurationSources } from "./settings-options.ts";
import { packageVersion } from "./version.ts";

interface UninstallOptions {
  node?: string;
  allNodes?: boolean;
  selector?: string;
  dryRun?: boolean;
  config?: string;
  kubeconfig?: string;
  kubeContext?: string;
  output: PageFormat;
}

/** What was done about one node. */
interface NodeResult {
  node: string;
  /** What was removed: "Node metadata.labels.example.com/gpus", "ResourceSlice worker-1-gpu-x". */
  removed: string[];
  /** Why nothing or not all of it was removed. */
  error?: string;
}

/** The labels of agents' pods, as the chart and the manifests have them. */
const AGENT_PODS = "app.kubernetes.io/part-of=nodekeeper,app.kubernetes.io/component=node-agent";
const AGENTS_END_MS = 60_000;
const POLL_MS = 1_000;
const REQUEST_DEADLINE_MS = 15_000;
// Each reads the object again.
const ATTEMPTS = 5;

/**
 * `nodekeeper uninstall`: removes what agents left in the cluster on one node or on all of them, and prints it. Waits up
 * to a minute for agents that still run, and leaves the nodes of those that do not end. Returns whether every node was
 * cleaned. Idempotent.
 */
export async function uninstallCommand(options: UninstallOptions, run: CommandRun): Promise<boolean> {
  const { node, allNodes = false, selector, dryRun = false } = options;
  if ((node !== undefined) === allNodes)
    throw new NodekeeperError("invalid", "uninstall needs either --node NAME or --all-nodes");
  if (selector !== undefined && !allNodes)
    throw new NodekeeperError("invalid", "--selector is for --all-nodes");
  const { config, kubeconfig, kubeContext } = options;
  const { configuration } = await loadConfiguration(
    configurationSources({ config, kubeconfig, kubeContext }),
  );
  const client = await clientOf(configuration, run.clock);
  try {
    const { signal } = run;
    const labelSelector = selector ? { labelSelector: selector } : {};
    const names =
      node === undefined
        ? (await client.list(nodes, { ...labelSelector, signal })).items.map(
            ({ metadata }) => metadata.name ?? "",
          )
        : [node];
    const agents = new Map(await remainingAgents(client, names, dryRun ? 0 : AGENTS_END_MS, run));
    // One that is no pod.
    if (!DirectoryLock.isFree(configuration.stateDir))
      agents.set(configuration.nodeName, `it uses the state directory ${configuration.stateDir}`);
    const results: NodeResult[] = [];
    for (const name of names) {
      const agent = agents.get(name);
      const isLeft = agent !== undefined && !dryRun;
      const refused = isLeft ? messageWithId(new AgentStillRuns({ node: name, agent })) : undefined;
      results.push(
        refused === undefined
          ? await cleaned(client, { nodeName: name, isDryRun: dryRun, signal }, configuration)
          : { node: name, removed: [], error: refused },
      );
    }
    printAs(run.output, options.output, results, () => page(results, dryRun));
    return results.every(({ error }) => error === undefined);
  } finally {
    client.close();
  }
}

async function clientOf({ kube }: AgentConfiguration, clock: Clock): Promise<KubeApiClient> {
  return createKubeClient({
    access: await loadClusterAccess({ ...kube, environment: process.env }),
    clock,
    log: silentLogger,
    metrics: createKubeMetrics(new Registry()),
    version: packageVersion(),
    deadlineMs: REQUEST_DEADLINE_MS,
    fieldManager: FIELD_MANAGER,
  });
}

/** Waits until no agent runs on these nodes. Returns the pods that are left when the time is over, by node. */
async function remainingAgents(
  client: KubeApiClient,
  names: readonly string[],
  patienceMs: number,
  { clock, signal }: CommandRun,
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Set(names);
  const deadline = clock.monotonic() + patienceMs;
  for (;;) {
    const { items } = await client.list(podResource, { labelSelector: AGENT_PODS, signal });
    const agents = new Map(
      items.flatMap(({ metadata, spec }): [string, string][] => {
        const name = textOf((spec as { nodeName?: unknown } | undefined)?.nodeName) ?? "";
        return wanted.has(name) ? [[name, `pod ${metadata.namespace}/${metadata.name}`]] : [];
      }),
    );
    if (agents.size === 0 || clock.monotonic() >= deadline) return agents;
    await clock.sleep(POLL_MS, signal);
  }
}

interface Cleaning {
  nodeName: string;
  isDryRun: boolean;
  signal: AbortSignal;
}

interface Step {
  kind: string;
  /** Yields what was removed from the objects of the kind, once it is. */
  release(): AsyncGenerator<string, void>;
}

async function cleaned(
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
      await withAttempts(async () => {
        for await (const what of step.release()) result.removed.push(`${step.kind} ${what}`);
      });
    } catch (error) {
      cleaning.signal.throwIfAborted();
      result.error = result.error ? `${result.error}; ${messageWithId(error)}` : messageWithId(error);
    }
  }
  return result;
}

/** Tries again if the object was changed meanwhile. */
async function withAttempts(step: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await step();
    } catch (error) {
      if (codeOf(error) !== "conflict" || attempt === ATTEMPTS) throw error;
    }
  }
}

function page(results: readonly NodeResult[], isDryRun: boolean): string {
  const verb = isDryRun ? "would be removed" : "removed";
  const lines = results.flatMap(({ node, removed, error }) => [
    ...removed.map((what) => `${node}: ${verb}: ${what}`),
    ...(error === undefined ? [] : [`${node}: not removed: ${error}`]),
  ]);
  const total = results.reduce((sum, { removed }) => sum + removed.length, 0);
  const failed = results.filter(({ error }) => error !== undefined).length;
  const left = failed > 0 ? `; ${counted(failed, "node")} not cleaned` : "";
  return `${[...lines, `${counted(results.length, "node")}, ${counted(total, "item")} ${verb}${left}`].join("\n")}\n`;
}
