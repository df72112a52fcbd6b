import type { NodeTaint } from "@nodekeeper/api/decide";
import { TaintsMissing } from "@nodekeeper/api/errors";
import { ApiStatusError, type KubeObject, nodes, Watcher } from "@nodekeeper/core/kube";
import {
  codeOf,
  errorIdOf,
  type HealthCheck,
  type HealthResult,
  messageOf,
  type Runnable,
} from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import type { LiveTaints } from "../parts.ts";
import { type DesiredNodeTaints, mergeNodeTaints, readNodeTaints, taintPatch } from "./node-taints.ts";
import { NodeWrites } from "./node-writes.ts";
import { taintLosses } from "./taint-losses.ts";
import { TaintReports, type TaintReportsOptions } from "./taint-reports.ts";

export interface NodeTainterOptions extends Pick<TaintReportsOptions, "onChange"> {
  context: TaintReportsOptions["context"] &
    Pick<EvictionContext, "client" | "clock" | "metrics" | "kubeMetrics" | "queueMetrics">;
  /** Called with the Node as reported by the watch; undefined if it does not exist. */
  onNode?: (node: KubeObject | undefined) => void;
  /** The field manager of the client's writes. It proves that a taint is the agent's. */
  fieldManager: string;
}

// If the taints differ from the desired ones for longer than this, the readiness check fails, milliseconds.
const LATE_AFTER_MS = 60_000;

/**
 * Reconciles the agent's taints of the Node with those that the last round requires. The list of taints is atomic in
 * server-side apply: the agent reads the Node, changes only its own entries, and patches the list with the
 * resourceVersion that it read. The same patch writes the annotation that proves which taints are the agent's.
 *
 * 1. A failed write is retried after a backoff, and not before the time in Retry-After, even if rounds require other
 *    taints in between. After a conflict the Node is read again.
 * 2. A taint that another client removes or changes is restored, with an increasing delay.
 * 3. The Node is read by GET before each write. While it can't be watched, the readiness check fails, because changes
 *    by other clients are not seen.
 * 4. A missing Node is not a failure.
 * 5. A taint that the agent did not add is neither removed nor changed, even if it equals a desired one.
 * 6. While suspended, nothing is written.
 */
export class NodeTainter implements Runnable {
  readonly name = "eviction-taints";
  readonly #options: NodeTainterOptions;
  readonly #watcher: Watcher;
  readonly #writes: NodeWrites;
  readonly #reports: TaintReports;
  /** Taints of the Node as last read or written; undefined if the Node does not exist or was not read yet. */
  #live: LiveTaints | undefined;
  /** The Node in the last watch event. */
  #watched: KubeObject | undefined;
  /** Undefined before the first round and while suspended. */
  #desired: DesiredNodeTaints | undefined;
  #isSuspended = false;
  /** Monotonic time since when the taints differ from the desired ones. */
  #lateSince: number | undefined;
  /** The error of the last write; undefined if it succeeded. */
  #error: unknown;

  constructor(options: NodeTainterOptions) {
    this.#options = options;
    const { client, nodeName, clock, log, kubeMetrics: metrics } = options.context;
    this.#reports = new TaintReports(options);
    this.#writes = new NodeWrites(this.name, options.context);
    this.#watcher = new Watcher(
      { client, clock, log, metrics },
      {
        resource: nodes,
        fieldSelector: `metadata.name=${nodeName}`,
        handler: {
          onReplace: ([node]) => this.#watch(node, false),
          onUpsert: (node) => this.#watch(node, true),
          onDelete: () => this.#watch(undefined, true),
        },
      },
    );
  }

  /** Like `Tainter.setDesired`, for the Node. Nothing is written before the first call. */
  setDesired(desired: readonly NodeTaint[], isComplete: boolean): void {
    this.#desired = { desired, isComplete };
    this.#isSuspended = false;
    this.#reports.desired(desired);
    this.#compare();
  }

  /** Leaves the Node's taints unchanged until the next `setDesired`. A write that was already sent is not reverted. */
  suspend(): void {
    this.#desired = undefined;
    this.#isSuspended = true;
    this.#lateSince = undefined;
    this.#error = undefined;
    this.#writes.suspend();
    this.#reports.left(this.#live?.own);
  }

  /** The Node's taints as last read or written; undefined if they are not known. */
  get taints(): LiveTaints | undefined {
    return this.#live;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#watcher.run(signal),
      this.#writes.run(signal, (writeSignal) => this.#write(writeSignal)),
    ]);
  }

  /**
   * Fails if the Node's taints have differed from the desired ones for a minute, immediately if a right is missing, and
   * while the Node can't be watched or another client keeps changing the agent's taints.
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
    if (this.#isSuspended) this.#reports.left(this.#live?.own);
    this.#compare();
  }

  #taintsOf(node: KubeObject): LiveTaints {
    return readNodeTaints(node, this.#options.fieldManager);
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
    this.#lateSince ??= this.#options.context.clock.monotonic();
    // Wait for the first list. If the list fails, GET is the fallback.
    if (live === undefined && this.#watcher.lastError === undefined) return;
    this.#writes.schedule(signatureOf(desired));
  }

  get #isAbsent(): boolean {
    return this.#live === undefined && this.#watcher.isSynced;
  }

  #reconciled(live: LiveTaints, desired: DesiredNodeTaints): void {
    this.#live = live;
    this.#writes.reconciled(signatureOf(desired));
    this.#lateSince = undefined;
    this.#error = undefined;
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { metrics, clock } = this.#options.context;
    const seen = this.#live;
    if (this.#desired === undefined) return;
    try {
      const node = await this.#read(signal);
      // A round may have changed the desired taints, or suspended writing, during the read.
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
      // Another client may have changed the Node after the write and before its response.
      if (seenMeanwhile !== seen) this.#live = seenMeanwhile;
      this.#writes.succeeded();
      // A round may have changed the desired taints during the write.
      this.#compare();
    } catch (error) {
      if (signal.aborted || this.#isSuspended) throw error;
      this.#error = error;
      this.#lateSince ??= clock.monotonic();
      metrics.taintWrites.inc({ result: codeOf(error) === "conflict" ? "conflict" : "failed" });
      throw error;
    }
  }

  // Returns the Node's taints, after a write if one is needed.
  async #reconcile(node: KubeObject, desired: DesiredNodeTaints, signal: AbortSignal): Promise<LiveTaints> {
    const { client, nodeName, metrics } = this.#options.context;
    const live = this.#taintsOf(node);
    const merged = mergeNodeTaints(live, desired);
    if (merged === undefined) return live;
    const patch = taintPatch(node, merged.taints, merged.own);
    const written = await client.mergePatch(nodes, nodeName, patch, { signal });
    metrics.taintWrites.inc({ result: "written" });
    this.#reports.wrote(live.taints, merged.taints);
    return this.#taintsOf(written);
  }

  // Returns undefined if the Node does not exist. Before the first list a 404 is a failure, so that the read is
  // retried.
  async #read(signal: AbortSignal): Promise<KubeObject | undefined> {
    const { client, nodeName } = this.#options.context;
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
      return { ok: false, message: late, errorId: errorIdOf(this.#writeError) ?? TaintsMissing.id };
    }
    const watch = this.#watcher.healthCheck().check();
    if (!watch.ok) {
      const message = `changes of the Node by other clients are not seen: ${watch.message}`;
      return { ok: false, message, errorId: watch.errorId };
    }
    const { conflicts } = this.#writes;
    if (conflicts !== undefined) {
      const message = `another client keeps changing the agent's taints of the Node: restored ${conflicts} times`;
      return { ok: false, message, errorId: TaintsMissing.id };
    }
    if (this.#isAbsent) return { ok: true, message: `Node ${this.#options.context.nodeName} does not exist` };
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
    const late = this.#options.context.clock.monotonic() - this.#lateSince;
    const error = this.#writeError;
    // A missing right is reported immediately: only an operator can grant it.
    const isRefused = error !== undefined && codeOf(error) === "forbidden";
    if (late < LATE_AFTER_MS && !isRefused) return undefined;
    const because = error === undefined ? "" : `: ${messageOf(error)}`;
    return `the Node does not have the desired taints for ${Math.round(late / 1000)} s${because}`;
  }
}

function signatureOf({ desired, isComplete }: DesiredNodeTaints): string {
  return JSON.stringify([isComplete, ...desired.map(({ key, effect }) => `${key}:${effect}`).sort()]);
}
