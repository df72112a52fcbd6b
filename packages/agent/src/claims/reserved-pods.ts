import { codeOf, retryPolicies, WorkQueue, type WorkQueueMetrics } from "@nodekeeper/core/lib";
import type { PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import type { ClaimAllocations } from "./claim-allocations.ts";
import { type ClaimRecord, isEnding } from "./claim-records.ts";
import type { ClaimContext } from "./context.ts";

type Context = Pick<ClaimContext, "records" | "clock" | "log" | "queue"> & {
  allocations: Pick<ClaimAllocations, "read">;
  events: PodLifecycleEventGenerator["events"];
  queueMetrics?: WorkQueueMetrics | undefined;
};

/**
 * Completes the recorded pods of claims that several pods share: the kubelet only calls for the first pod. When a pod
 * starts, recorded claims of its namespace that may be reserved for it are read again, except those generated for
 * another pod. Those that are being unprepared are reconciled.
 */
export class ReservedPods {
  readonly #context: Context;
  readonly #queue: WorkQueue;

  constructor(context: Context) {
    this.#context = context;
    const { clock, log, queueMetrics: metrics } = context;
    const backoff = retryPolicies.claims;
    this.#queue = new WorkQueue({ name: "reserved-pods", clock, log, backoff, metrics });
  }

  /** Follows the node's pods until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#queue.run(signal, 1, (key) => this.#read(key, signal)), this.#follow(signal)]);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    // Without a cursor, the first item is a snapshot with the pods that started while the agent was not running.
    for await (const item of this.#context.events.read({}, signal)) {
      if (item.kind === "snapshot") for (const pod of item.pods) this.#found(pod);
      else if (item.event.type === "ContainerStarted" && item.event.container?.kind === "sandbox")
        this.#found(item.event.pod);
    }
  }

  #found({ namespace, uid }: { namespace: string; uid: string }): void {
    const { records } = this.#context;
    for (const record of records.all())
      if (record.namespace === namespace && mayBeReservedFor(record, uid)) this.#add(record);
  }

  // After a failed call to unprepare a claim, the kubelet may consider the claim prepared.
  #add(record: ClaimRecord): void {
    if (isEnding(record)) this.#context.queue.add(record.driver);
    else this.#queue.add(`${record.driver}/${record.uid}`);
  }

  async #read(key: string, signal: AbortSignal): Promise<void> {
    const { records, allocations } = this.#context;
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
  if (record.pods.some((pod) => pod.isOwner)) return false;
  return isEnding(record) || !record.pods.some((pod) => pod.uid === uid);
}
