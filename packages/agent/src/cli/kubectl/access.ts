import { readFile } from "node:fs/promises";
import type { ArchivedNodeExplanation } from "@nodekeeper/api/archive";
import type { NodeExplanation } from "@nodekeeper/api/records";
import { plainTexts } from "@nodekeeper/api/text";
import { messageOf } from "@nodekeeper/core/lib";
import { checkVariables } from "../../config/index.ts";
import { type Sourced, sourceLines } from "../answer-source.ts";
import type { AgentAccess, Options } from "../commands/context.ts";
import { countOf } from "../commands/options.ts";
import { agentRecords } from "../eviction/agent-records.ts";
import type { Output } from "../output.ts";
import { archiveOf, explainPodOf, orArchived, podQueryOf } from "./archive-access.ts";
import { Cluster } from "./cluster.ts";
import { Kubectl } from "./kubectl.ts";
import { kubectlFlags } from "./options.ts";
import { clusterSource } from "./page/cluster-source.ts";
import type { PageSource } from "./page/page-source.ts";

// k8s.io/client-go tools/clientcmd/api/helpers.go, MinifyConfig.
const NO_CONTEXT = "current-context must exist";
const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/**
 * How `kubectl nodekeeper` reaches agents: those of all nodes, through kubectl. `stop` terminates the processes it
 * started.
 */
export class ClusterAccess implements AgentAccess {
  readonly statusDescription =
    "print the state of a node's agent; without a node, a row for each node and the problems by node";
  readonly #env: Readonly<Record<string, string | undefined>>;
  #kubectl: Kubectl | undefined;

  /** @param env environment of the process; KUBECTL is the path of kubectl */
  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#env = env;
  }

  // The program declares the options.
  readonly addOptions: AgentAccess["addOptions"] = (command) => command;
  readonly addRecordOptions = this.addOptions;
  readonly addPodOptions: AgentAccess["addPodOptions"] = (command) =>
    command.option(
      "--at <time>",
      "the pod of that name or controller at a time, from the archive: 2026-03-01T03:00:00Z, or 3h for 3 hours ago",
    );
  readonly addNamespaceOptions = this.addOptions;
  readonly addNodeArgument: AgentAccess["addNodeArgument"] = (command) =>
    command.argument("[node]", "name of the node (or --node)");

  async connect(options: Options) {
    return await this.#cluster(options).connect(options.node);
  }

  async openRecords(options: Options) {
    return agentRecords(await this.connect(options));
  }

  readonly explainPod: AgentAccess["explainPod"] = async (options, text) => {
    const archive = await archiveOf(options);
    const query = podQueryOf(text, options, await this.defaultNamespace(options));
    return await explainPodOf(query, this.#cluster(options), archive);
  };

  readonly explainNode: AgentAccess["explainNode"] = async (options) => {
    const archive = await archiveOf(options);
    const { node } = options;
    const explain = async () => await this.#cluster(options).explainNode(node);
    if (!archive || node === undefined) return await explain();
    return await orArchived<Sourced<NodeExplanation | ArchivedNodeExplanation>>(explain, (reasons) =>
      archive.explainNode(node, reasons),
    );
  };

  async namespaceOf(options: Options): Promise<string | undefined> {
    return options.allNamespaces ? undefined : await this.defaultNamespace(options);
  }

  /** As in kubectl: from the flag, the kubeconfig's context, the pod this runs in, or "default". */
  async defaultNamespace(options: Options): Promise<string> {
    if (options.namespace !== undefined) return options.namespace;
    const args = ["config", "view", "--minify", "--output", "jsonpath={..namespace}"];
    try {
      return (await this.#start(options).run(args)).trim() || "default";
    } catch (error) {
      if (!messageOf(error).includes(NO_CONTEXT)) throw error;
      return this.#env.POD_NAMESPACE || (await podNamespace()) || "default";
    }
  }

  fleet(options: Options) {
    return options.node === undefined ? this.#cluster(options) : undefined;
  }

  /** Returns the data source of the page of all nodes. */
  pageSource(options: Options): PageSource {
    const namespace = () => this.defaultNamespace(options);
    return clusterSource({
      cluster: this.#cluster(options),
      kubectl: this.#start(options),
      namespace,
      explainPod: async (pod, node) => {
        const { answer, source } = plainTexts(await this.explainPod({ ...options, node }, pod));
        const { explanationPage } = await import("../eviction/explanation-page.ts");
        return explanationPage(answer, onPage, sourceLines(source));
      },
      explainNode: async (node) => {
        const { answer, source } = plainTexts(await this.explainNode({ ...options, node }));
        const { archivedNodePage, nodePage } = await import("../eviction/node-page.ts");
        const lines = sourceLines(source);
        return "lastAt" in answer ? archivedNodePage(answer, onPage, lines) : nodePage(answer, onPage, lines);
      },
      archivedNodes: async () => await (await archiveOf(options))?.nodes(),
    });
  }

  /** Terminates all running kubectl processes. */
  stop(): void {
    this.#kubectl?.stop();
  }

  #cluster(options: Options): Cluster {
    const { agentNamespace, agentSelector, parallel } = options;
    const kubectl = this.#start(options);
    const most = countOf(parallel, "--parallel");
    return new Cluster({ kubectl, namespace: agentNamespace, selector: agentSelector, parallel: most });
  }

  #start(options: Options): Kubectl {
    checkVariables(this.#env);
    this.#kubectl ??= new Kubectl(this.#env.KUBECTL || "kubectl", kubectlFlags(options));
    return this.#kubectl;
  }
}

/** Text without colors. */
const onPage: Output = { write() {}, isTerminal: false, columns: 120 };

// k8s.io/client-go tools/clientcmd/client_config.go, inClusterClientConfig: the only source besides POD_NAMESPACE.
async function podNamespace(): Promise<string> {
  try {
    return (await readFile(NAMESPACE_FILE, "utf8")).trim();
  } catch {
    return "";
  }
}
