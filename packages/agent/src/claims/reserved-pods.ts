import {
  type Clock,
  codeOf,
  type Logger,
  retryPolicies,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import type { ClaimAllocations } from "./claim-allocations.ts";
import { type ClaimRecord, type ClaimRecords, isEnding } from "./claim-records.ts";

export interface ReservedPodsOptions {
  records: ClaimRecords;
  allocations: Pick<ClaimAllocations, "read">;
  lifecycle: Pick<PodLifecycleEventGenerator, "events">;
  clock: Clock;
  log: Logger;
  queueMetrics?: WorkQueueMetrics;
}

/**
 * Completes the recorded pods of claims that several pods share: the kubelet only calls for the first pod. When a pod
 * starts, recorded claims of its namespace that may be reserved for it are read again, except those generated for
 * another pod.
 */
export class ReservedPods {
  readonly #options: ReservedPodsOptions;
  readonly #queue: WorkQueue;

  constructor(options: ReservedPodsOptions) {
    this.#options = options;
    const { clock, log, queueMetrics } = options;
    this.#queue = new WorkQueue({
      name: "reserved-pods",
      clock,
      log,
      backoff: retryPolicies.claims,
      ...(queueMetrics ? { metrics: queueMetrics } : {}),
    });
  }

  /** Follows the node's pods until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#queue.run(signal, 1, (key) => this.#read(key, signal)), this.#follow(signal)]);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { lifecycle } = this.#options;
    // Without a cursor, the first item is a snapshot with the pods that started while the agent was not running.
    for await (const item of lifecycle.events.read({}, signal)) {
      if (item.kind === "snapshot") for (const pod of item.pods) this.#found(pod);
      else if (item.event.type === "ContainerStarted" && item.event.container?.kind === "sandbox")
        this.#found(item.event.pod);
    }
  }

  #found({ namespace, uid }: { namespace: string; uid: string }): void {
    const { records } = this.#options;
    for (const record of records.all())
      if (record.namespace === namespace && mayBeReservedFor(record, uid))
        this.#queue.add(`${record.driver}/${record.uid}`);
  }

  async #read(key: string, signal: AbortSignal): Promise<void> {
    const { records, allocations } = this.#options;
    const [driver = "", uid = ""] = key.split("/");
    const record = records.get(driver, uid);
    if (!record || isEnding(record)) return;
    try {
      await allocations.read(driver, record, signal);
    } catch (error) {
      const code = codeOf(error);
      if (code !== "notFound" && code !== "conflict") throw error;
    }
  }
}

function mayBeReservedFor(record: ClaimRecord, uid: string): boolean {
  if (isEnding(record)) return false;
  return !(record.pods ?? []).some((pod) => pod.uid === uid || pod.isOwner);
}
