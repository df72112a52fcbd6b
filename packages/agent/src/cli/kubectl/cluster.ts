import { AgentNotFound, AgentUnreachable } from "@nodekeeper/api/errors";
import type { NodeExplanation, PodExplanation } from "@nodekeeper/api/records";
import { codeOf, messageOf, NodekeeperError, Semaphore } from "@nodekeeper/core/lib";
import { type AgentConnection, httpConnection } from "../agent-connection.ts";
import type { Sourced } from "../answer-source.ts";
import type { Fleet, FleetAnswer } from "../fleet.ts";
import { type PodName, podText } from "../pod-name.ts";
import { type AgentPod, findAgents } from "./agent-pods.ts";
import type { Forward, Kubectl } from "./kubectl.ts";
import { newestOf } from "./newest-explanation.ts";
import { Progress } from "./progress.ts";

const MOST_NAMED = 10;

export interface ClusterOptions {
  kubectl: Kubectl;
  /** Namespace of the agents' pods. Undefined: any. */
  namespace: string | undefined;
  /** Label selector of the agents' pods. */
  selector: string;
  /** Maximum number of agents queried concurrently. Each needs a kubectl process. */
  parallel: number;
}

/** The agents of a cluster, each reached through its own port-forward with the caller's rights. */
export class Cluster implements Fleet {
  readonly #options: ClusterOptions;
  readonly #places: Semaphore;
  #agents: Promise<AgentPod[]> | undefined;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#places = new Semaphore({ permits: options.parallel });
  }

  /**
   * Connects to the agent of a node. Without a name, there must be only one agent. Throws `notFound`, `invalid` or
   * `unavailable`.
   */
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

  /** Lists the agents anew. Returns the names of their nodes. Throws `notFound` if there are none. */
  async agentNodes(): Promise<Set<string>> {
    const { kubectl, namespace, selector } = this.#options;
    const agents = await findAgents(kubectl, namespace, selector);
    this.#agents = Promise.resolve(agents);
    return new Set(agents.map(({ node }) => node));
  }

  /** Forwards a local port to the agent of a node. Throws `notFound`, `unavailable`. */
  async forward(node: string): Promise<Forward> {
    try {
      return await this.#forward(await this.#agentOn(node));
    } catch {
      return await this.#forwardAgain(node);
    }
  }

  // The agent's pod may have been replaced. During a rolling update of its DaemonSet, the agent may be unavailable.
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
    if (node === undefined) throw new NodekeeperError("invalid", `specify a node with --node: ${known}`);
    const message = `no agent on node ${node}; agents run on ${known}`;
    throw new AgentNotFound({ problem: message });
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
          // An agent without a record of the pod has answered.
          progress.add(answer.answer !== undefined || codeOf(answer.error) === "notFound");
          return answer;
        }),
      ),
    );
  }

  /**
   * Returns what the agent of the pod's node recorded about it, or else any other agent. Throws `notFound`,
   * `unavailable`.
   */
  async explainPod(pod: PodName, node: string | undefined): Promise<Sourced<PodExplanation>> {
    const query = { pod: podText(pod) };
    const explain = (agent: AgentConnection) => agent.get("eviction/explain", query);
    if (node !== undefined) {
      using agent = await this.connect(node);
      return answeredBy(node, await explain(agent));
    }
    const [agents, podNode] = await Promise.all([this.#list(), "uid" in pod ? undefined : this.#nodeOf(pod)]);
    const isFirst = (agent: AgentPod) => agent.node === podNode;
    const [own] = await this.#askSome(agents.filter(isFirst), explain);
    if (own?.answer) return answeredBy(own.node, own.answer);
    const others = await this.#askSome(
      agents.filter((agent) => !isFirst(agent)),
      explain,
    );
    const newest = newestOf([...(own ? [own] : []), ...others], query.pod, !("uid" in pod));
    return answeredBy(newest.node, newest.answer, newest.notes);
  }

  /** Returns what the agent of a node recorded about it. Throws as `connect`. */
  async explainNode(node: string | undefined): Promise<Sourced<NodeExplanation>> {
    using agent = await this.connect(node);
    const answer = await agent.get("eviction/node");
    return answeredBy(answer.nodeName ?? node ?? "", answer);
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

  async #forward({ node, namespace, pod, port, problem }: AgentPod): Promise<Forward> {
    const { kubectl } = this.#options;
    // The pod may have been deleted since it was listed. That must not be `notFound`, by which an agent reports that it
    // has no record.
    if (problem === undefined) return await orUnavailable(kubectl.forward(namespace, pod, port));
    const message = `can't query the agent on node ${node}: ${problem}`;
    throw new AgentUnreachable({ problem: message });
  }

  #list(): Promise<AgentPod[]> {
    const { kubectl, namespace, selector } = this.#options;
    this.#agents ??= findAgents(kubectl, namespace, selector);
    return this.#agents;
  }

  // Without permission to list nodes, nodes without an agent are not shown.
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

  // If the pod is deleted, or the caller may not get it, it may have been on any node.
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

function answeredBy<T>(node: string, answer: T, notes: string[] = []): Sourced<T> {
  return { answer, source: { kind: "agent", node, notes } };
}

async function orUnavailable<T>(found: Promise<T>): Promise<T> {
  try {
    return await found;
  } catch (error) {
    if (codeOf(error) !== "notFound") throw error;
    throw new NodekeeperError("unavailable", messageOf(error), { cause: error });
  }
}

interface NodeConnectionOptions {
  node: string;
  /**
   * Forwards a port to the agent. Called again after the forward ends, for example because the agent's pod was
   * replaced.
   */
  open: () => Promise<Forward>;
}

/** Returns a connection to the agent of a node, through a port-forward that the first request opens. */
function nodeConnection({ node, open }: NodeConnectionOptions): AgentConnection {
  let forward: Forward | undefined;
  return {
    async get(path, query) {
      if (!forward?.isOpen) forward = await open();
      const connection = httpConnection({
        address: forward.address,
        name: `agent on node ${node}`,
        advice: "Its status server is queried on the node's loopback through kubectl port-forward",
      });
      return await connection.get(path, query);
    },
    [Symbol.dispose]: () => forward?.[Symbol.dispose](),
  };
}
