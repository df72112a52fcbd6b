import {
  type ApiResource,
  ApiStatusError,
  type EventRecorder,
  type KubeApiClient,
  type KubeMetrics,
  type KubeObject,
  Watcher,
} from "@nodekeeper/core/kube";
import {
  type Clock,
  codeOf,
  formatDuration,
  type HealthCheck,
  type HealthResult,
  type Logger,
  messageOf,
  RepairPace,
  type Runnable,
  retryPolicies,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { NodeTaint } from "../decide/taints.ts";
import { type LiveTaint, mergeNodeTaints, newTaints, type OwnTaints, restoredTaints } from "./node-taints.ts";
import type { TaintMetrics } from "./taint-metrics.ts";

export interface NodeTainterOptions {
  client: KubeApiClient;
  nodeName: string;
  /** The first part of our keys. Taints under another prefix, an earlier one of ours too, are others'. */
  prefix: string;
  events: Pick<EventRecorder, "record">;
  /** How long a taint stays after its condition was last met, milliseconds. */
  transitionMs: () => number;
  /** Is called with each taint that was added or removed, in words. */
  onChange: (message: string) => void;
  clock: Clock;
  log: Logger;
  metrics: TaintMetrics;
  kubeMetrics: KubeMetrics;
  queueMetrics: WorkQueueMetrics;
}

const MOST_REASONS = 256;
const NODES: ApiResource = {
  group: "",
  version: "v1",
  kind: "Node",
  plural: "nodes",
  namespaced: false,
  verbs: ["get", "list", "watch", "patch"],
  subresources: ["status"],
};
// The queue's only key.
const NODE = "node";
// Taints that are not as they should be for longer fail the health check, milliseconds.
const PATIENCE_MS = 60_000;

/**
 * Keeps our taints of the Node as the last round wants them. The list of taints is one value with no merge key, so it
 * is read afresh, changed in our entries alone, and written with the version that was read.
 *
 * 1. A failed write is tried again after the backoff, and not before the time that Retry-After asks for, whatever
 *    rounds want meanwhile. A conflict reads again.
 * 2. What another client removes or changes of ours is put back, more slowly each time.
 * 3. Where the Node can't be listed, it is read by GET for what rounds want, and the health check fails: what others
 *    change is not seen.
 * 4. A Node that does not exist has no taints to keep: that is no failure.
 */
export class NodeTainter implements Runnable {
  readonly name = "eviction-taints";
  readonly #options: NodeTainterOptions;
  readonly #watcher: Watcher;
  readonly #queue: WorkQueue;
  readonly #repairs: RepairPace;
  /** As last seen or written; undefined: there is no Node, or nothing is known of it. */
  #live: readonly LiveTaint[] | undefined;
  #own: OwnTaints | undefined;
  /** What was wanted when the Node last had just that; a difference from then on is another client's. */
  #inStepWith: string | undefined;
  #isRepairDue = false;
  /** Monotonic: since when something wanted is not there. */
  #lateSince: number | undefined;
  /** Why a taint was last wanted, by "key:effect". */
  readonly #reasons = new Map<string, string>();
  /** Of the last write; undefined where it succeeded. */
  #error: unknown;

  constructor(options: NodeTainterOptions) {
    this.#options = options;
    const { client, nodeName, clock, log, kubeMetrics, queueMetrics } = options;
    this.#repairs = new RepairPace(clock, retryPolicies.taintRepair);
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
      backoff: retryPolicies.nodeTaints,
      metrics: queueMetrics,
    });
  }

  /** As `Tainter.want`, for the Node. Nothing is written before the first call. */
  want(wanted: readonly NodeTaint[], isComplete: boolean): void {
    this.#own = { wanted, isComplete, prefix: this.#options.prefix };
    for (const { key, effect, why } of wanted) this.#remember(`${key}:${effect}`, why);
    this.#compare();
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#watcher.run(signal),
      this.#queue.run(signal, 1, (_key, queueSignal) => this.#write(queueSignal)),
    ]);
  }

  /**
   * Fails when the Node's taints have not been what they should be for a minute, at once when a right is missing, and
   * while the Node can't be watched.
   */
  healthCheck(): HealthCheck {
    return { name: "EvictionTaintsPublished", kind: "ready", check: () => this.#check() };
  }

  #seen(node: KubeObject | undefined): void {
    this.#live = node && taintsOfNode(node);
    this.#compare();
  }

  #compare(): void {
    const own = this.#own;
    if (own === undefined) return;
    if (this.#isAbsent) {
      this.#lateSince = undefined;
      return;
    }
    const live = this.#live;
    if (live !== undefined && mergeNodeTaints(live, own) === undefined) {
      this.#inStep(live, own);
      return;
    }
    this.#lateSince ??= this.#options.clock.monotonic();
    // The list is on its way; a GET is for where it fails.
    if (live === undefined && this.#watcher.lastError === undefined) return;
    this.#schedule(own);
  }

  get #isAbsent(): boolean {
    return this.#live === undefined && this.#watcher.isSynced;
  }

  #inStep(live: readonly LiveTaint[], own: OwnTaints): void {
    this.#live = live;
    this.#inStepWith = signatureOf(own);
    this.#lateSince = undefined;
    this.#error = undefined;
  }

  #schedule(own: OwnTaints): void {
    // A write that failed is due again when its backoff, or the time of a Retry-After, is over.
    if (this.#queue.requeues(NODE) > 0) return;
    if (signatureOf(own) !== this.#inStepWith) {
      this.#queue.add(NODE);
      return;
    }
    if (this.#isRepairDue) return;
    this.#isRepairDue = true;
    this.#queue.addAfter(NODE, this.#repairs.next());
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { client, nodeName, metrics, clock } = this.#options;
    const own = this.#own;
    this.#isRepairDue = false;
    if (own === undefined) return;
    try {
      const node = await this.#read(signal);
      if (node === undefined) {
        this.#seen(undefined);
        return;
      }
      const live = taintsOfNode(node);
      const taints = mergeNodeTaints(live, own);
      if (taints !== undefined) {
        const { resourceVersion, uid } = node.metadata;
        const patch = { metadata: { resourceVersion, uid }, spec: { taints } };
        await client.mergePatch(NODES, nodeName, patch, { signal });
        metrics.writes.inc({ result: "written" });
        this.#tell(live, taints);
      }
      this.#inStep(taints ?? live, own);
      this.#queue.forget(NODE);
      // More may have been wanted meanwhile.
      if (this.#own !== own) this.#compare();
    } catch (error) {
      if (signal.aborted) throw error;
      this.#error = error;
      this.#lateSince ??= clock.monotonic();
      metrics.writes.inc({ result: codeOf(error) === "conflict" ? "conflict" : "failed" });
      throw error;
    }
  }

  // Undefined: there is none. While no list has come, only a later reading can tell of a new one, so that it is a failure.
  async #read(signal: AbortSignal): Promise<KubeObject | undefined> {
    const { client, nodeName } = this.#options;
    try {
      return await client.get(NODES, nodeName, { signal });
    } catch (error) {
      const isAbsent = error instanceof ApiStatusError && error.httpStatus === 404;
      if (isAbsent && this.#watcher.isSynced) return undefined;
      throw error;
    }
  }

  // Of a taint that is never removed the reason need not be kept for ever.
  #remember(taint: string, why: string): void {
    this.#reasons.delete(taint);
    this.#reasons.set(taint, why);
    const [oldest] = this.#reasons.keys();
    if (this.#reasons.size > MOST_REASONS && oldest !== undefined) this.#reasons.delete(oldest);
  }

  #tell(before: readonly LiveTaint[], after: readonly LiveTaint[]): void {
    const { events, log, nodeName, transitionMs, onChange } = this.#options;
    const added = newTaints(before, after);
    const removed = newTaints(after, before);
    const restored = restoredTaints(before, after);
    log.info({ node: nodeName, added, removed, restored }, "taints of the node changed");
    // The kubelet, too, names its Node by name where a uid belongs.
    const regarding = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
    for (const taint of added) {
      const why = this.#reasons.get(taint);
      const message = `Taint ${taint} added${why === undefined ? "" : `: ${why}`}`;
      const lasting = `. It is removed ${formatDuration(transitionMs())} after that clears.`;
      events.record({
        ...{ type: "Warning", reason: "NodePressureTainted" },
        ...{ message: why === undefined ? `${message}.` : message + lasting, regarding },
      });
      onChange(lowered(message));
    }
    for (const taint of removed) {
      const why = this.#reasons.get(taint);
      const message = `Taint ${taint} removed: no longer reported${why === undefined ? "" : `. Last: ${why}`}`;
      events.record({ type: "Normal", reason: "NodePressureUntainted", message: `${message}.`, regarding });
      this.#reasons.delete(taint);
      onChange(lowered(message));
    }
  }

  #check(): HealthResult {
    const late = this.#lateness();
    if (late !== undefined) return { ok: false, message: late };
    const watch = this.#watcher.healthCheck().check();
    if (!watch.ok)
      return { ok: false, message: `what others change of the Node is not seen: ${watch.message}` };
    const { conflicts } = this.#repairs;
    if (conflicts !== undefined) {
      const message = `another client keeps changing our taints of the Node: put back ${conflicts} times`;
      return { ok: false, message };
    }
    if (this.#isAbsent) return { ok: true, message: `Node ${this.#options.nodeName} does not exist` };
    return { ok: true, message: this.#own === undefined ? "no round yet" : "taints are as wanted" };
  }

  #lateness(): string | undefined {
    if (this.#lateSince === undefined) return undefined;
    const late = this.#options.clock.monotonic() - this.#lateSince;
    const error = this.#error ?? this.#watcher.lastError;
    // A missing right has to be given: no wait makes it come.
    const isRefused = error !== undefined && codeOf(error) === "forbidden";
    if (late < PATIENCE_MS && !isRefused) return undefined;
    const because = error === undefined ? "" : `: ${messageOf(error)}`;
    return `the Node's taints have not been as they should be for ${Math.round(late / 1000)} s${because}`;
  }
}

function taintsOfNode({ spec }: KubeObject): LiveTaint[] {
  const taints = (spec as { taints?: unknown } | undefined)?.taints;
  return Array.isArray(taints) ? taints : [];
}

function signatureOf({ wanted, isComplete }: OwnTaints): string {
  return JSON.stringify([isComplete, ...wanted.map(({ key, effect }) => `${key}:${effect}`).sort()]);
}

function lowered(message: string): string {
  return `${message.charAt(0).toLowerCase()}${message.slice(1)}`;
}
