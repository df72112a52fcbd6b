import { aboutNode, type KubeApiClient, type KubeObject, nodes } from "@nodekeeper/core/kube";
import { messageOf, type Runnable } from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import { NodeWrites } from "./node-writes.ts";

/** The type of the Node condition. */
export const EVICTION_BLOCKED = "EvictionBlocked";
/** The field manager of the condition. It differs from that of reports, so that neither removes the other's fields. */
export const CONDITION_MANAGER = "nodekeeper-eviction";

/** The desired content of the condition. */
export interface DesiredNodeCondition {
  status: "True" | "False";
  /** In CamelCase, for example "PluginLate". */
  reason: string;
  message: string;
}

export interface NodeConditionOptions
  extends Pick<EvictionContext, "nodeName" | "events" | "clock" | "log" | "queueMetrics"> {
  client: Pick<KubeApiClient, "apply">;
}

interface LiveCondition {
  type: string;
  status?: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

// Minimum time between writes if only the text changes, milliseconds.
const TEXT_EVERY_MS = 60_000;

/**
 * Reconciles the Node condition `EvictionBlocked` with the last round's result, by server-side apply of the Node's
 * status. Another part watches the Node: it must call `seen` for each change.
 *
 * 1. The condition is first written when it becomes True: a Node without it counts as False.
 * 2. A change of the status is written immediately, a change of only the text at most once a minute. A failed write is
 *    retried with backoff. A condition that another client removes or changes is restored, with an increasing delay.
 * 3. No other condition is written. An Event about the Node is recorded when the condition becomes True.
 * 4. Nothing is written while no condition is desired.
 */
export class NodeCondition implements Runnable {
  readonly name = "eviction-condition";
  readonly #options: NodeConditionOptions;
  readonly #writes: NodeWrites;
  #desired: DesiredNodeCondition | undefined;
  #node: KubeObject | undefined;
  /** The condition became True, but the Node, which may have the condition from before a restart, is not known yet. */
  #isReportDue = false;
  /** Monotonic time of the last write. */
  #writtenAt = Number.NEGATIVE_INFINITY;
  #error: unknown;

  constructor(options: NodeConditionOptions) {
    this.#options = options;
    this.#writes = new NodeWrites(this.name, options);
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#writes.run(signal, (writeSignal) => this.#write(writeSignal));
  }

  /**
   * Sets the desired condition, and schedules a write if the Node differs from it. Records an Event when the condition
   * becomes True.
   * @param desired undefined to leave the Node unchanged, as in dry run
   */
  setDesired(desired: DesiredNodeCondition | undefined): void {
    const before = this.#desired;
    this.#desired = desired;
    if (desired === undefined) this.#error = undefined;
    if (desired?.status !== "True") this.#isReportDue = false;
    else if (before?.status !== "True") this.#isReportDue = true;
    this.#compare();
  }

  /** Passes the Node as read from the API server; undefined if it does not exist. */
  seen(node: KubeObject | undefined): void {
    this.#node = node;
    this.#compare();
  }

  /** Why the last write failed; undefined if it succeeded. */
  get lastError(): string | undefined {
    return this.#error === undefined ? undefined : messageOf(this.#error);
  }

  #compare(): void {
    const [desired, node] = [this.#desired, this.#node];
    if (desired === undefined || node === undefined) return;
    const live = conditionOf(node);
    if (this.#isReportDue && live?.status !== "True") this.#report(desired);
    this.#isReportDue = false;
    if (isAsDesired(live, desired)) {
      this.#writes.reconciled(signatureOf(desired));
      this.#error = undefined;
      return;
    }
    const isOnlyText = live?.status === desired.status;
    const textDelayMs = this.#writtenAt + TEXT_EVERY_MS - this.#options.clock.monotonic();
    this.#writes.schedule(signatureOf(desired), isOnlyText ? textDelayMs : 0);
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { client, nodeName, clock } = this.#options;
    const [desired, node] = [this.#desired, this.#node];
    const live = conditionOf(node);
    if (desired === undefined || node === undefined || isAsDesired(live, desired)) return;
    const now = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
    const since = live?.status === desired.status ? live.lastTransitionTime : undefined;
    const condition = {
      type: EVICTION_BLOCKED,
      ...desired,
      lastHeartbeatTime: now,
      lastTransitionTime: since ?? now,
    };
    // An apply would recreate a Node that was deleted in the meantime. With the UID the apply fails instead.
    const { uid } = node.metadata;
    const body = {
      metadata: { name: nodeName, ...(uid ? { uid } : {}) },
      status: { conditions: [condition] },
    };
    const options = { subresource: "status", force: true, fieldManager: CONDITION_MANAGER, signal };
    try {
      const written = await client.apply(nodes, body, options);
      this.#writtenAt = clock.monotonic();
      this.#error = undefined;
      this.#writes.succeeded();
      // The watch may have reported a newer Node during the call.
      if (this.#node === node) this.#node = written;
      this.#compare();
    } catch (error) {
      if (!signal.aborted) this.#error = error;
      throw error;
    }
  }

  #report({ reason, message }: DesiredNodeCondition): void {
    const { events, nodeName } = this.#options;
    events.record({
      type: "Warning",
      reason: "EvictionBlocked",
      message: `${reason}: ${message}`,
      regarding: aboutNode(nodeName),
    });
  }
}

function conditionOf(node: KubeObject | undefined): LiveCondition | undefined {
  const conditions = (node?.status as { conditions?: unknown } | undefined)?.conditions;
  if (!Array.isArray(conditions)) return undefined;
  return conditions.find((one) => one?.type === EVICTION_BLOCKED);
}

function isAsDesired(live: LiveCondition | undefined, desired: DesiredNodeCondition): boolean {
  if (live === undefined) return desired.status === "False";
  return live.status === desired.status && live.reason === desired.reason && live.message === desired.message;
}

function signatureOf({ status, reason, message }: DesiredNodeCondition): string {
  return JSON.stringify([status, reason, message]);
}
