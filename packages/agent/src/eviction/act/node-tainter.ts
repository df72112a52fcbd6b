import {
  ApiStatusError,
  type EventRecorder,
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
  /** The prefix of the agent's taint keys. Taints with another prefix belong to other clients. */
  prefix: string;
  events: Pick<EventRecorder, "record">;
  /** How long a taint stays after its condition was last met, milliseconds. */
  transitionMs: () => number;
  /** Called with a message for each taint that was added or removed. */
  onChange: (message: string, kind: "taintAdded" | "taintRemoved") => void;
  /** Called with the Node as the watch reports it; undefined if it does not exist. */
  onNode?: (node: KubeObject | undefined) => void;
  clock: Clock;
  log: Logger;
  metrics: TaintMetrics;
  kubeMetrics: KubeMetrics;
  queueMetrics: WorkQueueMetrics;
}

const MOST_REASONS = 256;
// The queue's only key.
const NODE = "node";
// Taints that differ from the desired ones for longer fail the readiness check, milliseconds.
const LATE_AFTER_MS = 60_000;

/**
 * Reconciles the agent's taints of the Node with those that the last round requires. The list of taints is atomic in
 * server-side apply, so the Node is read, only the agent's entries are changed, and the list is patched with the
 * resourceVersion that was read.
 *
 * 1. A failed write is retried after a backoff, and not before the time in Retry-After, also when rounds require other
 *    taints in between. After a conflict the Node is read again.
 * 2. A taint that another client removes or changes is restored, with an increasing delay.
 * 3. While the Node can't be watched it is read by GET before each write, and the readiness check fails, because changes
 *    by other clients are not seen.
 * 4. A Node that does not exist is not a failure.
 */
export class NodeTainter implements Runnable {
  readonly name = "eviction-taints";
  readonly #options: NodeTainterOptions;
  readonly #watcher: Watcher;
  readonly #queue: WorkQueue;
  readonly #repairs: RepairPace;
  /** Taints of the Node as last read or written; undefined where the Node does not exist or was not read yet. */
  #live: readonly LiveTaint[] | undefined;
  #own: OwnTaints | undefined;
  /** Signature of the desired taints that the Node had last; a later difference was made by another client. */
  #reconciledWith: string | undefined;
  #isRepairDue = false;
  /** Monotonic time since which the taints differ from the desired ones. */
  #lateSince: number | undefined;
  /** The last reason of each taint, by "key:effect". */
  readonly #reasons = new Map<string, string>();
  /** The error of the last write; undefined where it succeeded. */
  #error: unknown;

  constructor(options: NodeTainterOptions) {
    this.#options = options;
    const { client, nodeName, clock, log, kubeMetrics, queueMetrics } = options;
    this.#repairs = new RepairPace(clock, retryPolicies.taintRepair);
    this.#watcher = new Watcher({
      client,
      resource: nodes,
      fieldSelector: `metadata.name=${nodeName}`,
      handler: {
        onReplace: ([node]) => this.#watched(node),
        onUpsert: (node) => this.#watched(node),
        onDelete: () => this.#watched(undefined),
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
    this.#own = { desired, isComplete, prefix: this.#options.prefix };
    for (const { key, effect, why } of desired) this.#remember(`${key}:${effect}`, why);
    this.#compare();
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

  #watched(node: KubeObject | undefined): void {
    this.#options.onNode?.(node);
    this.#seen(node);
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
      this.#reconciled(live, own);
      return;
    }
    this.#lateSince ??= this.#options.clock.monotonic();
    // The first list has not arrived yet; GET is the fallback for a failing list.
    if (live === undefined && this.#watcher.lastError === undefined) return;
    this.#schedule(own);
  }

  get #isAbsent(): boolean {
    return this.#live === undefined && this.#watcher.isSynced;
  }

  #reconciled(live: readonly LiveTaint[], own: OwnTaints): void {
    this.#live = live;
    this.#reconciledWith = signatureOf(own);
    this.#lateSince = undefined;
    this.#error = undefined;
  }

  #schedule(own: OwnTaints): void {
    // A failed write is retried when its backoff, or the time in Retry-After, is over.
    if (this.#queue.requeues(NODE) > 0) return;
    if (signatureOf(own) !== this.#reconciledWith) {
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
    const seen = this.#live;
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
        await client.mergePatch(nodes, nodeName, patch, { signal });
        metrics.writes.inc({ result: "written" });
        this.#report(live, taints);
      }
      const seenMeanwhile = this.#live;
      this.#reconciled(taints ?? live, own);
      // It may be as another client made it after the write, before the answer came.
      if (seenMeanwhile !== seen) this.#live = seenMeanwhile;
      this.#queue.forget(NODE);
      // A round may have set other desired taints during the write as well.
      this.#compare();
    } catch (error) {
      if (signal.aborted) throw error;
      this.#error = error;
      this.#lateSince ??= clock.monotonic();
      metrics.writes.inc({ result: codeOf(error) === "conflict" ? "conflict" : "failed" });
      throw error;
    }
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

  // Bounds the reasons of taints that are never removed.
  #remember(taint: string, why: string): void {
    this.#reasons.delete(taint);
    this.#reasons.set(taint, why);
    const [oldest] = this.#reasons.keys();
    if (this.#reasons.size > MOST_REASONS && oldest !== undefined) this.#reasons.delete(oldest);
  }

  #report(before: readonly LiveTaint[], after: readonly LiveTaint[]): void {
    const { events, log, nodeName, transitionMs, onChange } = this.#options;
    const added = newTaints(before, after);
    const removed = newTaints(after, before);
    const restored = restoredTaints(before, after);
    log.info({ node: nodeName, added, removed, restored }, "node taints changed");
    // As the kubelet does, the Node's name is used as the uid: pkg/kubelet/kubelet.go, nodeRef.
    const regarding = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
    for (const taint of added) {
      const why = this.#reasons.get(taint);
      const message = `Taint ${taint} added${why === undefined ? "" : `: ${why}`}`;
      const lasting = `. It is removed ${formatDuration(transitionMs())} after the condition clears.`;
      events.record({
        ...{ type: "Warning", reason: "NodePressureTainted" },
        ...{ message: why === undefined ? `${message}.` : message + lasting, regarding },
      });
      onChange(lowered(message), "taintAdded");
    }
    for (const taint of removed) {
      const why = this.#reasons.get(taint);
      const message = `Taint ${taint} removed: no longer reported${why === undefined ? "" : `. Last: ${why}`}`;
      events.record({ type: "Normal", reason: "NodePressureUntainted", message: `${message}.`, regarding });
      this.#reasons.delete(taint);
      onChange(lowered(message), "taintRemoved");
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
    return {
      ok: true,
      message: this.#own === undefined ? "no round yet" : "the Node has the desired taints",
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

function taintsOfNode({ spec }: KubeObject): LiveTaint[] {
  const taints = (spec as { taints?: unknown } | undefined)?.taints;
  return Array.isArray(taints) ? taints : [];
}

function signatureOf({ desired, isComplete }: OwnTaints): string {
  return JSON.stringify([isComplete, ...desired.map(({ key, effect }) => `${key}:${effect}`).sort()]);
}

function lowered(message: string): string {
  return `${message.charAt(0).toLowerCase()}${message.slice(1)}`;
}
