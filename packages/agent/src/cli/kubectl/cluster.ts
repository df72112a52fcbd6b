import { codeOf, messageOf, NodekeeperError, Semaphore } from "@nodekeeper/core/lib";
import type { PodExplanation } from "../../eviction/index.ts";
import type { AgentConnection } from "../agent-connection.ts";
import type { Fleet, FleetAnswer } from "../fleet.ts";
import { type PodName, podText } from "../pod-name.ts";
import { type AgentPod, findAgents } from "./agent-pods.ts";
import type { Forward, Kubectl } from "./kubectl.ts";
import { newestOf } from "./newest-explanation.ts";
import { nodeConnection } from "./node-connection.ts";
import { Progress } from "./progress.ts";

const MOST_NAMED = 10;

export interface ClusterOptions {
  kubectl: Kubectl;
  /** Where the agents' pods are. */
  namespace: string;
  /** The labels that they have. */
  selector: string;
  /** How many agents are asked at a time: each has a kubectl process meanwhile. */
  parallel: number;
}

/** The agents of a cluster, each reached through a port-forward of its own with the caller's rights. */
export class Cluster implements Fleet {
  readonly #options: ClusterOptions;
  readonly #places: Semaphore;
  #agents: Promise<AgentPod[]> | undefined;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#places = new Semaphore({ permits: options.parallel });
  }

  /** Connects to the agent of a node; without a name to the only one there is. Throws `notFound`, `unavailable`. */
  async connect(node: string | undefined): Promise<AgentConnection> {
    const found = await this.#agentOn(node);
    let isFirst = true;
    const open = async () => {
      if (!isFirst) return await this.#forwardAgain(found.node);
      isFirst = false;
      return await this.#forward(found);
    };
    return nodeConnection({ node: found.node, open });
  }

  // The node's agent has another pod by now, or none yet: while its DaemonSet is updated it is unavailable.
  async #forwardAgain(node: string): Promise<Forward> {
    this.#agents = undefined;
    return await this.#forward(await orUnavailable(this.#agentOn(node)));
  }

  async #agentOn(node: string | undefined): Promise<AgentPod> {
    const agents = await this.#list();
    const isIt = (agent: AgentPod) => (node === undefined ? agents.length === 1 : agent.node === node);
    const found = agents.find(isIt);
    if (found) return found;
    const some = agents.slice(0, MOST_NAMED).map((agent) => agent.node);
    const more = agents.length > some.length ? ` and ${agents.length - some.length} more` : "";
    const known = `${some.join(", ")}${more}`;
    if (node === undefined) throw new NodekeeperError("invalid", `name a node with --node: ${known}`);
    const message = `no agent on node ${node}; there are agents on ${known}`;
    throw new NodekeeperError("notFound", message, { id: "NK1716" });
  }

  async ask<T>(work: (agent: AgentConnection, node: string) => Promise<T>): Promise<FleetAnswer<T>[]> {
    const [agents, nodes] = await Promise.all([this.#list(), this.#nodes()]);
    const answers = await this.#askSome(agents, work);
    const without = nodes.filter((name) => !agents.some(({ node }) => node === name));
    const error = new NodekeeperError("notFound", "no agent on this node");
    const missing = without.map((node) => ({ node, hasAgent: false, answer: undefined, error }));
    return [...answers, ...missing].sort((a, b) => (a.node < b.node ? -1 : 1));
  }

  async #askSome<T>(
    agents: readonly AgentPod[],
    work: (agent: AgentConnection, node: string) => Promise<T>,
  ): Promise<FleetAnswer<T>[]> {
    const { signal } = new AbortController();
    using progress = new Progress(agents.length);
    return await Promise.all(
      agents.map((agent) =>
        this.#places.run(signal, async (): Promise<FleetAnswer<T>> => {
          const answer = await this.#answer(agent, work);
          // An agent without a record has answered.
          progress.add(answer.answer !== undefined || codeOf(answer.error) === "notFound");
          return answer;
        }),
      ),
    );
  }

  /** What is recorded about a pod: by the agent of its node, else by any other. Throws `notFound`, `unavailable`. */
  async explainPod(pod: PodName, node: string | undefined): Promise<PodExplanation> {
    const query = { pod: podText(pod) };
    const explain = (agent: AgentConnection) => agent.get("eviction/explain", query);
    if (node !== undefined) {
      using agent = await this.connect(node);
      return await explain(agent);
    }
    const [agents, podNode] = await Promise.all([this.#list(), "uid" in pod ? undefined : this.#nodeOf(pod)]);
    const isFirst = (agent: AgentPod) => agent.node === podNode;
    const [own] = await this.#askSome(agents.filter(isFirst), explain);
    if (own?.answer) return own.answer;
    const others = await this.#askSome(
      agents.filter((agent) => !isFirst(agent)),
      explain,
    );
    return newestOf([...(own ? [own] : []), ...others], query.pod);
  }

  async #answer<T>(
    agent: AgentPod,
    work: (agent: AgentConnection, node: string) => Promise<T>,
  ): Promise<FleetAnswer<T>> {
    const { node } = agent;
    try {
      using connection = nodeConnection({ node, open: () => this.#forward(agent) });
      return { node, hasAgent: true, answer: await work(connection, node), error: undefined };
    } catch (error) {
      return { node, hasAgent: true, answer: undefined, error };
    }
  }

  async #forward({ node, pod, port, problem }: AgentPod): Promise<Forward> {
    const { kubectl, namespace } = this.#options;
    // A pod that was deleted since it was listed: of an agent, "not found" is the answer that it has no record.
    if (problem === undefined) return await orUnavailable(kubectl.forward(namespace, pod, port));
    const message = `the agent on node ${node} can't be asked: ${problem}`;
    throw new NodekeeperError("unavailable", message, { id: "NK1710" });
  }

  #list(): Promise<AgentPod[]> {
    const { kubectl, namespace, selector } = this.#options;
    this.#agents ??= findAgents(kubectl, namespace, selector);
    return this.#agents;
  }

  // Without the right to list nodes, those that have no agent are not shown.
  async #nodes(): Promise<string[]> {
    try {
      const names = await this.#options.kubectl.run(["get", "nodes", "--output", "name"]);
      return names
        .split("\n")
        .flatMap((line) => (line.startsWith("node/") ? line.slice("node/".length) : []));
    } catch (error) {
      if (codeOf(error) === "forbidden") return [];
      throw error;
    }
  }

  // A pod that is deleted, or that the caller may not see, has been on any of the nodes.
  async #nodeOf({ namespace, name }: { namespace: string; name: string }): Promise<string | undefined> {
    const args = ["get", "pod", name, "--namespace", namespace, "--output", "jsonpath={.spec.nodeName}"];
    try {
      return (await this.#options.kubectl.run(args)) || undefined;
    } catch (error) {
      if (["notFound", "forbidden"].includes(codeOf(error))) return undefined;
      throw error;
    }
  }
}

async function orUnavailable<T>(found: Promise<T>): Promise<T> {
  try {
    return await found;
  } catch (error) {
    if (codeOf(error) !== "notFound") throw error;
    throw new NodekeeperError("unavailable", messageOf(error), { cause: error });
  }
}
