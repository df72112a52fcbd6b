import { AgentStillRuns } from "@nodekeeper/api/errors";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import {
  createKubeClient,
  createKubeMetrics,
  type KubeApiClient,
  type KubeObject,
  loadClusterAccess,
  nodes,
  podResource,
  recordOf,
  textOf,
} from "@nodekeeper/core/kube";
import {
  type Clock,
  codeOf,
  isTransient,
  messageWithId,
  NodekeeperError,
  Registry,
  Semaphore,
  silentLogger,
} from "@nodekeeper/core/lib";
import { FIELD_MANAGER } from "../assembly/index.ts";
import { loadConfiguration } from "../config/index.ts";
import { DirectoryLock } from "../state/index.ts";
import { cleanCluster, cleanNode } from "./clean-node.ts";
import type { CommandRun } from "./follow.ts";
import { type PageFormat, printMessage } from "./output.ts";
import { configurationSources } from "./settings-options.ts";
import { UninstallReport } from "./uninstall-report.ts";
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

/** The labels of agents' pods, as the chart and the manifests have them. */
const AGENT_PODS = "app.kubernetes.io/part-of=nodekeeper,app.kubernetes.io/component=node-agent";
const AGENTS_END_MS = 60_000;
const POLL_MS = 1_000;
const REQUEST_DEADLINE_MS = 15_000;
/** Nodes that are cleaned concurrently. The client has eight connections. */
const NODES_AT_ONCE = 16;
/** Requests per second to the API server. A node with nothing to remove takes four. */
const QPS = 200;
/** A Node with its images may have 50 KiB. */
const NODES_PER_PAGE = 200;

/**
 * `nodekeeper uninstall`: removes what agents left in the cluster, on one node or on all. Cleans nodes concurrently.
 * Prints each result as it arrives; as JSON or YAML, prints all results at the end, even if the command fails. Waits up
 * to a minute for agents that still run, and skips nodes whose agents do not stop. ResourceSlices of pools beyond the
 * node are deleted with all nodes, unless agents run on nodes that are not selected. Idempotent: a node that is already
 * clean is only read. Returns whether all was cleaned.
 */
export async function uninstallCommand(options: UninstallOptions, run: CommandRun): Promise<boolean> {
  const { node, allNodes = false, selector, dryRun: isDryRun = false } = options;
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
    const names = node === undefined ? await nodeNames(client, selector, run.signal) : [node];
    const report = new UninstallReport({ names, isDryRun, format: options.output, run });
    let isClean = false;
    try {
      const isFree = await cleanAll(names, report, { client, configuration, isDryRun, run });
      // Agents of the nodes that are not selected go on publishing them.
      const other =
        allNodes && isFree && selector !== undefined && (await agentBeyond(names, client, run.signal));
      if (other)
        printMessage(`ResourceSlices of pools beyond the node are left to the other agents: ${other}`);
      else if (allNodes && isFree)
        report.addCluster(await cleanCluster(client, { isDryRun, clock: run.clock, signal: run.signal }));
    } finally {
      isClean = report.finish();
    }
    return isClean;
  } finally {
    client.close();
  }
}

interface Uninstall {
  client: KubeApiClient;
  configuration: AgentConfiguration;
  isDryRun: boolean;
  run: CommandRun;
}

/**
 * Cleans each node on which no agent runs, and waits up to a minute for agents that still run. Returns whether all
 * agents have stopped. Errors are thrown after all cleanings in progress have ended. In dry run, does not check agents.
 */
async function cleanAll(
  names: readonly string[],
  report: UninstallReport,
  { client, configuration, isDryRun, run: { clock, signal } }: Uninstall,
): Promise<boolean> {
  const places = new Semaphore({ permits: NODES_AT_ONCE });
  let isFree = true;
  const refusal = (node: string, agent: string) => {
    isFree = false;
    report.add({ node, removed: [], error: messageWithId(new AgentStillRuns({ node, agent })) });
  };
  const clean = async (nodeName: string) => {
    // An agent on this node that does not run in a pod holds the lock of its state directory.
    if (!isDryRun && nodeName === configuration.nodeName && !DirectoryLock.isFree(configuration.stateDir))
      refusal(nodeName, `it uses the state directory ${configuration.stateDir}`);
    else report.add(await cleanNode(client, { nodeName, isDryRun, clock, signal }, configuration));
    signal.throwIfAborted();
  };
  /** Undefined if they can't be listed now. */
  const listAgents = async (isLast: boolean) => {
    try {
      return await runningAgents(client, signal);
    } catch (error) {
      if (isLast || signal.aborted || !isTransient(codeOf(error))) throw error;
      return undefined;
    }
  };
  const deadline = clock.monotonic() + AGENTS_END_MS;
  for (let left = names; left.length > 0; ) {
    // Read before agents are listed: cleaning the other nodes may take longer than the rest of the deadline.
    const isLast = clock.monotonic() >= deadline;
    const agents = isDryRun ? new Map<string, string>() : await listAgents(isLast);
    if (agents) {
      const free = left.filter((name) => !agents.has(name));
      const cleaned = await Promise.allSettled(free.map((name) => places.run(signal, () => clean(name))));
      const failed = cleaned.find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
      left = left.filter((name) => agents.has(name));
      if (isLast) {
        for (const name of left) refusal(name, agents.get(name)!);
        return isFree;
      }
    }
    if (left.length > 0) await clock.sleep(POLL_MS, signal);
  }
  return isFree;
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
    qps: QPS,
    burst: QPS,
  });
}

async function nodeNames(
  client: KubeApiClient,
  labelSelector: string | undefined,
  signal: AbortSignal,
): Promise<string[]> {
  const names = new Set<string>();
  const options = { ...(labelSelector ? { labelSelector } : {}), pageSize: NODES_PER_PAGE, signal };
  await client.visit(nodes, ({ metadata }) => names.add(metadata.name ?? ""), options);
  return [...names];
}

/** Returns the agents' pods by their nodes. */
async function runningAgents(client: KubeApiClient, signal: AbortSignal): Promise<Map<string, string>> {
  const agents = new Map<string, string>();
  const add = ({ metadata, spec }: KubeObject) =>
    agents.set(textOf(recordOf(spec).nodeName) ?? "", `pod ${metadata.namespace}/${metadata.name}`);
  await client.visit(podResource, add, { labelSelector: AGENT_PODS, signal });
  return agents;
}

/** Returns an agent's pod that is on none of the nodes: "pod default/nodekeeper-x runs on node worker-2". */
async function agentBeyond(
  names: readonly string[],
  client: KubeApiClient,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const [node, pod] of await runningAgents(client, signal))
    if (!names.includes(node)) return node === "" ? `${pod} is pending` : `${pod} runs on node ${node}`;
  return undefined;
}
