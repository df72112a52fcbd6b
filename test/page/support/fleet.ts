import type { FoundPod } from "@nodekeeper/api/fleet";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { type AgentConnection, httpConnection } from "../../../packages/agent/src/cli/agent-connection.ts";
import { pageCommand } from "../../../packages/agent/src/cli/kubectl/page/page.ts";
import type { ListedNode, PageSource } from "../../../packages/agent/src/cli/kubectl/page/page-source.ts";

/** A node of a simulated cluster. What is omitted is healthy. */
export interface FleetNodeState extends Partial<ListedNode> {
  version?: string;
  mode?: "live" | "dryRun" | "mixed" | null;
  /** Pods evicted in the last hour. */
  evicted?: number;
  conditions?: string[];
  /** Its settings. */
  configuration?: object;
  /** Plugins that work. */
  working?: string[];
  /** Plugins that fail, with the reason. */
  failing?: Record<string, string>;
  /** Why its agent can't be reached. */
  problem?: string;
  /** The status server of a real agent, "host:port". */
  address?: string;
}

/** The page of all nodes of a simulated cluster, served as `kubectl nodekeeper page` does. */
export class TestFleet implements AsyncDisposable {
  readonly nodes = new Map<string, FleetNodeState>();
  readonly pods: FoundPod[] = [];
  /** How often each agent was read. */
  readonly reads = new Map<string, number>();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #printed = Promise.withResolvers<string>();

  constructor(nodes: Record<string, FleetNodeState>, more: Partial<PageSource> = {}) {
    for (const [node, state] of Object.entries(nodes)) this.nodes.set(node, state);
    const write = (text: string) => {
      const address = /http:\/\/\S+/.exec(text)?.[0];
      if (address) this.#printed.resolve(address);
    };
    this.#running = pageCommand({
      source: { ...this.#source(), ...more },
      parallel: 8,
      port: 0,
      output: { write, isTerminal: false, columns: 80 },
      signal: this.#stop.signal,
    });
    this.#running.catch((error) => this.#printed.reject(error));
  }

  /** The printed address, whose token works once. */
  address(): Promise<string> {
    return this.#printed.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  #source(): PageSource {
    return {
      nodes: async () => ({ nodes: [...this.nodes].map(([node, state]) => listed(node, state)) }),
      connect: async (node) => {
        this.reads.set(node, (this.reads.get(node) ?? 0) + 1);
        const state = this.nodes.get(node)!;
        const { address } = state;
        if (address === undefined) return connectionTo(node, state);
        return httpConnection({ address, name: `agent on node ${node}`, advice: "It is a test's." });
      },
      forward: async (node) => {
        const { address } = this.nodes.get(node) ?? {};
        if (address === undefined) throw new NodekeeperError("unavailable", `pod agent-${node} is Pending`);
        return { address, isOpen: true, [Symbol.dispose]() {} };
      },
      pods: async (text) => {
        const items = this.pods.filter(({ namespace, name }) => `${namespace}/${name}`.includes(text));
        return { items, searched: this.pods.length, hasMore: false };
      },
      explainNode: async (node) => `Node ${node}\n`,
      explainPod: async (pod, node) => {
        throw new NodekeeperError("notFound", `no record of pod ${pod} on ${node ?? "any node"}`);
      },
      nodeObject: async () => ({ kubeletVersion: "v1.34.1" }),
    };
  }
}

function listed(node: string, { archived, ...state }: FleetNodeState): ListedNode {
  if (archived) return { node, hasAgent: false, archived };
  const { condition = "Ready", isCordoned = false, hasAgent = true } = state;
  return { node, condition, isCordoned, hasAgent };
}

function connectionTo(node: string, state: FleetNodeState): AgentConnection {
  const { version = "0.1.0", mode = "dryRun", evicted = 0, conditions = [], problem } = state;
  const { working = [], failing = {} } = state;
  const now = Date.now();
  const answers: Record<string, unknown> = {
    node: {
      ...{ nodeName: node, version, startedAt: now - 3_600_000, health: { ok: true, checks: [] } },
      eviction: mode === null ? null : { mode, dryRunPlugins: [], evicted: 0, conditions: 0 },
    },
    plugins: [...working.map((name) => [name, null] as const), ...Object.entries(failing)].map(
      ([name, error]) => ({
        ...{ name, type: "EvictionPlugin", state: "registered", versions: [], attempts: 1, contentBytes: 0 },
        ...{ problems: [], error, since: now, errorSince: error === null ? null : now },
      }),
    ),
    objects: [],
    version: { version, nodeName: node, node: "v24.21.0", startedAt: now },
    configuration: state.configuration ?? {},
    "eviction/evictions": {
      coverage: { oldest: 0, requests: 0, gaps: [] },
      items: Array.from({ length: evicted }, (_, at) => ({
        ...{ uid: `${node}-${at}`, namespace: "default", name: `web-${at}`, dryRun: false },
        outcome: { result: "terminated" },
      })),
    },
    "eviction/node": { conditions: conditions.map((name) => ({ name, taints: [] })) },
  };
  return {
    async get(path) {
      if (problem !== undefined) throw new NodekeeperError("unavailable", problem);
      if (path in answers) return answers[path] as never;
      throw new NodekeeperError("notFound", `no ${path}`);
    },
    [Symbol.dispose]() {},
  };
}
