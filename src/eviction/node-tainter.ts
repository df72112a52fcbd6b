import {
  type ApiResource,
  type EventRecorder,
  type KubeApiClient,
  type KubeMetrics,
  type KubeObject,
  Watcher,
} from "../kube/index.ts";
import {
  type Clock,
  codeOf,
  type HealthCheck,
  type HealthResult,
  type Logger,
  messageOf,
  type Runnable,
  WorkQueue,
  type WorkQueueMetrics,
} from "../lib/index.ts";
import { type LiveTaint, mergeNodeTaints, newTaints, type OwnTaints } from "./node-taints.ts";
import type { TaintMetrics } from "./taint-metrics.ts";
import type { NodeTaint } from "./taints.ts";

export interface NodeTainterOptions {
  client: KubeApiClient;
  nodeName: string;
  /** The first part of our keys. Taints under another prefix, an earlier one of ours too, are others'. */
  prefix: string;
  events: Pick<EventRecorder, "record">;
  clock: Clock;
  log: Logger;
  metrics: TaintMetrics;
  kubeMetrics: KubeMetrics;
  queueMetrics: WorkQueueMetrics;
}

const NODES: ApiResource = {
  group: "",
  version: "v1",
  kind: "Node",
  plural: "nodes",
  namespaced: false,
  verbs: ["get", "list", "watch", "patch"],
  subresources: ["status"],
};
const BACKOFF = { baseMs: 500, maxMs: 30_000 };
// Taints that can't be written for longer turn the health check, milliseconds.
const PATIENCE_MS = 60_000;

/**
 * Keeps our taints of the Node as the last round wants them. The list of taints is one value with no merge key, so it
 * is read afresh, changed in our entries alone, and written with the version that was read. A conflict reads again.
 */
export class NodeTainter implements Runnable {
  readonly name = "eviction-taints";
  readonly #options: NodeTainterOptions;
  readonly #watcher: Watcher;
  readonly #queue: WorkQueue;
  #live: readonly LiveTaint[] | undefined;
  #own: OwnTaints | undefined;
  /** Monotonic: since when something wanted is not written. */
  #lateSince: number | undefined;
  #error = "";

  constructor(options: NodeTainterOptions) {
    this.#options = options;
    const { client, nodeName, clock, log, kubeMetrics, queueMetrics } = options;
    this.#watcher = new Watcher({
      client,
      resource: NODES,
      fieldSelector: `metadata.name=${nodeName}`,
      handler: {
        onReplace: ([node]) => this.#seen(node),
        onUpsert: (node) => this.#seen(node),
        onDelete: () => this.#seen(undefined),
      },
      clock,
      log,
      metrics: kubeMetrics,
    });
    this.#queue = new WorkQueue({
      name: "eviction-taints",
      clock,
      log,
      backoff: BACKOFF,
      metrics: queueMetrics,
    });
  }

  /** As `Tainter.want`, for the Node. Nothing is written before the first call. */
  want(wanted: readonly NodeTaint[], isComplete: boolean): void {
    this.#own = { wanted, isComplete, prefix: this.#options.prefix };
    this.#compare();
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#watcher.run(signal),
      this.#queue.run(signal, 1, (_key, queueSignal) => this.#write(queueSignal)),
    ]);
  }

  /** Fails when the Node's taints have not been what they should be for a minute. */
  healthCheck(): HealthCheck {
    return { name: "EvictionTaintsPublished", kind: "ready", check: () => this.#check() };
  }

  #seen(node: KubeObject | undefined): void {
    this.#live = node && taintsOfNode(node);
    this.#compare();
  }

  #compare(): void {
    if (this.#own === undefined || this.#live === undefined) return;
    const { clock } = this.#options;
    if (mergeNodeTaints(this.#live, this.#own) === undefined) {
      this.#lateSince = undefined;
      return;
    }
    this.#lateSince ??= clock.monotonic();
    this.#queue.add("node");
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { client, nodeName, metrics, clock } = this.#options;
    const own = this.#own;
    if (own === undefined) return;
    try {
      const node = await client.get(NODES, nodeName, { signal });
      const live = taintsOfNode(node);
      const taints = mergeNodeTaints(live, own);
      if (taints !== undefined) {
        const { resourceVersion, uid } = node.metadata;
        const patch = { metadata: { resourceVersion, uid }, spec: { taints } };
        await client.mergePatch(NODES, nodeName, patch, { signal });
        metrics.writes.inc({ result: "written" });
        this.#tell(live, taints);
      }
      this.#live = taints ?? live;
      this.#lateSince = undefined;
      // More may have been wanted meanwhile.
      if (this.#own !== own) this.#compare();
    } catch (error) {
      if (signal.aborted) throw error;
      this.#error = messageOf(error);
      this.#lateSince ??= clock.monotonic();
      metrics.writes.inc({ result: codeOf(error) === "conflict" ? "conflict" : "failed" });
      throw error;
    }
  }

  #tell(before: readonly LiveTaint[], after: readonly LiveTaint[]): void {
    const { events, log, nodeName } = this.#options;
    const added = newTaints(before, after);
    const removed = newTaints(after, before);
    log.info({ node: nodeName, added, removed }, "taints of the node changed");
    // The kubelet, too, names its Node by name where a uid belongs.
    const regarding = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
    if (added.length > 0) {
      const message = `Under pressure: tainted ${added.join(", ")}`;
      events.record({ type: "Warning", reason: "NodePressureTainted", message, regarding });
    }
    if (removed.length > 0) {
      const message = `No longer under pressure: removed ${removed.join(", ")}`;
      events.record({ type: "Normal", reason: "NodePressureUntainted", message, regarding });
    }
  }

  #check(): HealthResult {
    const { clock } = this.#options;
    if (this.#lateSince !== undefined) {
      const late = clock.monotonic() - this.#lateSince;
      if (late >= PATIENCE_MS) {
        const seconds = Math.round(late / 1000);
        return { ok: false, message: `the Node's taints can't be written for ${seconds} s: ${this.#error}` };
      }
    }
    return { ok: true, message: this.#own === undefined ? "no round yet" : "taints are as wanted" };
  }
}

function taintsOfNode({ spec }: KubeObject): LiveTaint[] {
  const taints = (spec as { taints?: unknown } | undefined)?.taints;
  return Array.isArray(taints) ? taints : [];
}
