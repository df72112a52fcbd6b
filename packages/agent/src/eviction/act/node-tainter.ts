import {
  ApiStatusError,
  type KubeApiClient,
  type KubeMetrics,
  type KubeObject,
  nodes,
  Watcher,
} from "@nodekeeper/core/kube";
import {
  type Clock,
  codeOf,
  errorIdOf,
  type HealthCheck,
  type HealthResult,
  messageOf,
  RepairPace,
  type Runnable,
  retryPolicies,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { NodeTaint } from "../decide/taints.ts";
import type { LiveTaints } from "../parts.ts";
import { type DesiredNodeTaints, mergeNodeTaints, readNodeTaints, taintPatch } from "./node-taints.ts";
import { taintLosses } from "./taint-losses.ts";
import type { TaintMetrics } from "./taint-metrics.ts";
import { TaintReports, type TaintReportsOptions } from "./taint-reports.ts";

export interface NodeTainterOptions extends TaintReportsOptions {
  client: KubeApiClient;
  /** Called with the Node as the watch reports it; undefined if it does not exist. */
  onNode?: (node: KubeObject | undefined) => void;
  /** The field manager of the client's writes, which proves that a taint is the agent's. */
  fieldManager: string;
  /**
   * When the agent recorded that it added taints that it has not removed since, wall milliseconds by "key:effect". They are
   * the agent's if the Node has no annotation, as after an upgrade from a version that wrote none.
   */
  addedTaints: () => ReadonlyMap<string, number>;
  clock: Clock;
  metrics: TaintMetrics;
  kubeMetrics: KubeMetrics;
  queueMetrics: WorkQueueMetrics;
}

// The queue's only key.
const NODE = "node";
// Taints that differ from the desired ones for longer fail the readiness check, milliseconds.
const LATE_AFTER_MS = 60_000;

/**
 * Reconciles the agent's taints of the Node with those that the last round requires. The list of taints is atomic in
 * server-side apply, so the Node is read, only the agent's entries are changed, and the list is patched with the
 * resourceVersion that was read. The same patch writes the annotation that proves which taints are the agent's.
 *
 * 1. A failed write is retried after a backoff, and not before the time in Retry-After, also when rounds require other
 *    taints in between. After a conflict the Node is read again.
 * 2. A taint that another client removes or changes is restored, with an increasing delay.
 * 3. While the Node can't be watched it is read by GET before each write, and the readiness check fails, because changes
 *    by other clients are not seen.
 * 4. A Node that does not exist is not a failure.
 * 5. A taint that the agent did not add is neither removed nor changed, also if it equals a desired one.
 * 6. While it is suspended, nothing is written.
 */
export class NodeTainter implements Runnable {
  readonly name = "eviction-taints";
  readonly #options: NodeTainterOptions;
  readonly #watcher: Watcher;
  readonly #queue: WorkQueue;
  readonly #repairs: RepairPace;
  readonly #reports: TaintReports;
  /** Taints of the Node as last read or written; undefined where the Node does not exist or was not read yet. */
  #live: LiveTaints | undefined;
  /** The Node of the last watch event. */
  #watched: KubeObject | undefined;
  /** Undefined before the first round, and while it is suspended. */
  #desired: DesiredNodeTaints | undefined;
  #isSuspended = false;
  /** As `addedTaints`, until the Node has been as desired once; undefined before it was read. */
  #recorded: ReadonlyMap<string, number> | undefined;
  /** Signature of the desired taints that the Node had last; a later difference was made by another client. */
  #reconciledWith: string | undefined;
  #isRepairDue = false;
  /** Monotonic time since which the taints differ from the desired ones. */
  #lateSince: number | undefined;
  /** The error of the last write; undefined where it succeeded. */
  #error: unknown;

  constructor(options: NodeTainterOptions) {
    this.#options = options;
    const { client, nodeName, clock, log, kubeMetrics, queueMetrics } = options;
    this.#reports = new TaintReports(options);
    this.#repairs = new RepairPace(clock, retryPolicies.taintRepair);
    this.#watcher = new Watcher({
      client,
      resource: nodes,
      fieldSelector: `metadata.name=${nodeName}`,
      handler: {
        onReplace: ([node]) => this.#watch(node, false),
        onUpsert: (node) => this.#watch(node, true),
        onDelete: () => this.#watch(undefined, true),
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

  /** As `Tainter.setDesired`, for the Node. Nothing is written before the first call. */
  setDesired(desired: readonly NodeTaint[], isComplete: boolean): void {
    this.#desired = { desired, isComplete };
    this.#isSuspended = false;
    this.#reports.desired(desired);
    this.#compare();
  }

  /** Leaves the Node's taints as they are until the next `setDesired`. A write that was sent is not taken back. */
  suspend(): void {
    this.#desired = undefined;
    this.#isSuspended = true;
    this.#reconciledWith = undefined;
    this.#lateSince = undefined;
    this.#error = undefined;
    this.#queue.forget(NODE);
  }

  /** The Node's taints as last read or written; undefined if they are not known. */
  get taints(): LiveTaints | undefined {
    return this.#live;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#watcher.run(signal),
      this.#queue.run(signal, 1, (_key, queueSignal) => this.#write(queueSignal)),
    ]);
  }

  /**
   * Fails when the Node's taints have differed from the desired ones for a minute, at once when a right is missing, and
   * while the Node can't be watched.
   */
  healthCheck(): HealthCheck {
    return { name: "EvictionTaintsPublished", kind: "ready", check: () => this.#check() };
  }

  #watch(node: KubeObject | undefined, isAdjacent: boolean): void {
    this.#options.onNode?.(node);
    const before = this.#watched;
    this.#watched = node;
    const { fieldManager } = this.#options;
    const losses = before && node ? taintLosses(before, node, fieldManager, isAdjacent) : [];
    for (const loss of losses) this.#reports.lost(loss);
    this.#seen(node);
  }

  #seen(node: KubeObject | undefined): void {
    this.#live = node && this.#taintsOf(node);
    this.#compare();
  }

  #taintsOf(node: KubeObject): LiveTaints {
    this.#recorded ??= this.#options.addedTaints();
    return readNodeTaints(node, this.#options.fieldManager, this.#recorded);
  }

  #compare(): void {
    const desired = this.#desired;
    if (desired === undefined) return;
    if (this.#isAbsent) {
      this.#lateSince = undefined;
      return;
    }
    const live = this.#live;
    if (live !== undefined && mergeNodeTaints(live, desired) === undefined) {
      this.#reconciled(live, desired);
      return;
    }
    this.#lateSince ??= this.#options.clock.monotonic();
    // The first list has not arrived yet; GET is the fallback for a failing list.
    if (live === undefined && this.#watcher.lastError === undefined) return;
    this.#schedule(desired);
  }

  get #isAbsent(): boolean {
    return this.#live === undefined && this.#watcher.isSynced;
  }

  #reconciled(live: LiveTaints, desired: DesiredNodeTaints): void {
    this.#live = live;
    this.#recorded = new Map();
    this.#reconciledWith = signatureOf(desired);
    this.#lateSince = undefined;
    this.#error = undefined;
  }

  #schedule(desired: DesiredNodeTaints): void {
    // A failed write is retried when its backoff, or the time in Retry-After, is over.
    if (this.#queue.requeues(NODE) > 0) return;
    if (signatureOf(desired) !== this.#reconciledWith) {
      this.#queue.add(NODE);
      return;
    }
    if (this.#isRepairDue) return;
    this.#isRepairDue = true;
    this.#queue.addAfter(NODE, this.#repairs.next());
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { metrics, clock } = this.#options;
    const seen = this.#live;
    this.#isRepairDue = false;
    if (this.#desired === undefined) return;
    try {
      const node = await this.#read(signal);
      // The round that ended during the read decides, also if it suspended writing.
      const desired = this.#desired;
      if (desired === undefined) return;
      if (node === undefined) {
        this.#seen(undefined);
        return;
      }
      const live = await this.#reconcile(node, desired, signal);
      const seenMeanwhile = this.#live;
      if (this.#isSuspended) return;
      this.#reconciled(live, desired);
      // It may be as another client made it after the write, before the answer came.
      if (seenMeanwhile !== seen) this.#live = seenMeanwhile;
      this.#queue.forget(NODE);
      // A round may have set other desired taints during the write as well.
      this.#compare();
    } catch (error) {
      if (signal.aborted || this.#isSuspended) throw error;
      this.#error = error;
      this.#lateSince ??= clock.monotonic();
      metrics.writes.inc({ result: codeOf(error) === "conflict" ? "conflict" : "failed" });
      throw error;
    }
  }

  // Returns the Node's taints after the write, if one is needed.
  async #reconcile(node: KubeObject, desired: DesiredNodeTaints, signal: AbortSignal): Promise<LiveTaints> {
    const { client, nodeName, metrics } = this.#options;
    const live = this.#taintsOf(node);
    const merged = mergeNodeTaints(live, desired);
    if (merged === undefined) return live;
    const patch = taintPatch(node, merged.taints, merged.own);
    const written = await client.mergePatch(nodes, nodeName, patch, { signal });
    metrics.writes.inc({ result: "written" });
    this.#reports.wrote(live.taints, merged.taints);
    return this.#taintsOf(written);
  }

  // Undefined where the Node does not exist. Before the first list a 404 is a failure, so that it is read again.
  async #read(signal: AbortSignal): Promise<KubeObject | undefined> {
    const { client, nodeName } = this.#options;
    try {
      return await client.get(nodes, nodeName, { signal });
    } catch (error) {
      const isAbsent = error instanceof ApiStatusError && error.httpStatus === 404;
      if (isAbsent && this.#watcher.isSynced) return undefined;
      throw error;
    }
  }

  #check(): HealthResult {
    const late = this.#lateness();
    if (late !== undefined) {
      return { ok: false, message: late, errorId: errorIdOf(this.#writeError) ?? "NK1614" };
    }
    const watch = this.#watcher.healthCheck().check();
    if (!watch.ok) {
      const message = `changes of the Node by other clients are not seen: ${watch.message}`;
      return { ok: false, message, errorId: watch.errorId };
    }
    const { conflicts } = this.#repairs;
    if (conflicts !== undefined) {
      const message = `another client keeps changing the agent's taints of the Node: restored ${conflicts} times`;
      return { ok: false, message, errorId: "NK1614" };
    }
    if (this.#isAbsent) return { ok: true, message: `Node ${this.#options.nodeName} does not exist` };
    if (this.#isSuspended) return { ok: true, message: "dry run: the Node's taints are left as they are" };
    return {
      ok: true,
      message: this.#desired === undefined ? "no round yet" : "the Node has the desired taints",
    };
  }

  get #writeError(): unknown {
    return this.#error ?? this.#watcher.lastError;
  }

  #lateness(): string | undefined {
    if (this.#lateSince === undefined) return undefined;
    const late = this.#options.clock.monotonic() - this.#lateSince;
    const error = this.#writeError;
    // A missing right is reported at once: it needs an operator.
    const isRefused = error !== undefined && codeOf(error) === "forbidden";
    if (late < LATE_AFTER_MS && !isRefused) return undefined;
    const because = error === undefined ? "" : `: ${messageOf(error)}`;
    return `the Node does not have the desired taints for ${Math.round(late / 1000)} s${because}`;
  }
}

function signatureOf({ desired, isComplete }: DesiredNodeTaints): string {
  return JSON.stringify([isComplete, ...desired.map(({ key, effect }) => `${key}:${effect}`).sort()]);
}
