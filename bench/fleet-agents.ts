import { type ChildProcess, fork } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import type { ControlPlane } from "../test/e2e/support/control-plane.ts";
import { writeKubeconfig } from "../test/e2e/support/kubeconfig.ts";
import { installNodekeeper, serviceAccount } from "../test/e2e/support/nodekeeper-install.ts";

/** What a process of the fleet does for one node. */
export type FleetOrder =
  | { kind: "add"; node: string; directory: string }
  | { kind: "start" | "stop" | "end"; node: string }
  | { kind: "report"; node: string; value: number };

/** That an order was obeyed, or why not. */
export interface FleetAnswer {
  id: number;
  error?: string;
}

const PROCESSES = 4;
const TOKEN_S = 3 * 3_600;
const PODS_PER_NODE = 3;

/** Agents of many nodes in a few processes, each with its own token, state, connections and plugins. */
export class FleetAgents {
  readonly nodes: readonly string[];
  readonly #cluster: ControlPlane;
  readonly #children: ChildProcess[] = [];
  readonly #open = new Map<number, PromiseWithResolvers<void>>();
  readonly #values = new Map<string, number>();
  #orders = 0;

  constructor(cluster: ControlPlane, count: number) {
    this.#cluster = cluster;
    this.nodes = Array.from({ length: count }, (_, at) => `node-${String(at).padStart(4, "0")}`);
  }

  /** Makes the Nodes, their pods and the processes; starts no agent. */
  async prepare(): Promise<void> {
    const uid = await installNodekeeper(this.#cluster);
    const script = join(import.meta.dirname, "fleet-process.ts");
    for (let each = 0; each < PROCESSES; each++) {
      const child = fork(script, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
      child.on("message", (answer: FleetAnswer) => this.#answered(answer));
      child.on("exit", (code) => this.#failAll(`a process of the fleet ended with ${code}`));
      this.#children.push(child);
    }
    await this.inParallel(8, async (node) => {
      const { metadata } = await this.#cluster.addNode(node);
      for (let pod = 0; pod < PODS_PER_NODE; pod++) {
        await this.#cluster.admin.create("/api/v1/namespaces/default/pods", podOf(`${node}-${pod}`, node));
      }
      const directory = this.#directory(node);
      mkdirSync(directory, { recursive: true });
      const tokenFile = join(directory, "token");
      const bound = { name: node, uid: String(metadata.uid) };
      writeFileSync(tokenFile, this.#cluster.tokens.sign({ ...serviceAccount, uid }, TOKEN_S, bound));
      const { port, trustFile: authority } = this.#cluster;
      writeKubeconfig(join(directory, "kubeconfig"), { port, authority, user: { tokenFile } });
      await this.#order({ kind: "add", node, directory });
      this.#values.set(node, 1);
    });
  }

  /** Starts a node's agent; resolves when it is ready. */
  start(node: string): Promise<void> {
    return this.#order({ kind: "start", node });
  }

  /** Stops a node's agent; its plugins stay. */
  stop(node: string): Promise<void> {
    return this.#order({ kind: "stop", node });
  }

  /** A node's reporter reports another value. */
  async change(node: string): Promise<void> {
    const value = (this.#values.get(node) ?? 0) + 1;
    this.#values.set(node, value);
    await this.#order({ kind: "report", node, value });
  }

  /** Each node's reporter reports another value once in each period, spread over it, until the signal aborts. */
  async changeEvery(periodMs: number, signal: AbortSignal): Promise<void> {
    const restMs = periodMs / this.nodes.length;
    for (let at = 0; !signal.aborted; at++) {
      await systemClock.sleep(restMs, signal).catch(() => {});
      await this.change(this.nodes[at % this.nodes.length]!);
    }
  }

  /** How many nodes' last value the API server does not have. */
  async unpublished(): Promise<number> {
    const path = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources?resourceVersion=0";
    const { items } = await this.#cluster.admin.get(path);
    const published = new Map<string, string>();
    for (const { metadata, status } of items)
      published.set(metadata.name, status?.resources?.capacity?.["example.com/value"]);
    return this.nodes.filter((node) => published.get(node) !== String(this.#values.get(node))).length;
  }

  /** Does something for each node, for so many at one time. */
  async inParallel(limit: number, work: (node: string) => Promise<void>): Promise<void> {
    const left = [...this.nodes];
    const worker = async () => {
      for (let node = left.shift(); node !== undefined; node = left.shift()) await work(node);
    };
    await Promise.all(Array.from({ length: limit }, worker));
  }

  /** Ends the processes. */
  async end(): Promise<void> {
    await this.inParallel(16, (node) => this.#order({ kind: "end", node })).catch(() => {});
    for (const child of this.#children) {
      child.removeAllListeners("exit");
      child.kill("SIGKILL");
    }
  }

  #directory(node: string): string {
    return join(this.#cluster.directory, "f", node);
  }

  #order(order: FleetOrder): Promise<void> {
    const id = this.#orders++;
    const done = Promise.withResolvers<void>();
    this.#open.set(id, done);
    // A node always belongs to the same process.
    const child = this.#children[Number(order.node.slice(-4)) % this.#children.length]!;
    child.send({ ...order, id });
    return done.promise;
  }

  #answered({ id, error }: FleetAnswer): void {
    const done = this.#open.get(id);
    this.#open.delete(id);
    if (error === undefined) done?.resolve();
    else done?.reject(new Error(error));
  }

  #failAll(message: string): void {
    for (const { reject } of this.#open.values()) reject(new Error(message));
  }
}

function podOf(name: string, nodeName: string) {
  const containers = [{ name: "main", image: "registry.example.com/app:1" }];
  return { apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { nodeName, containers } };
}
