import type { ClaimRecord } from "./claim-records.ts";
import type { ClaimUse } from "./claim-use.ts";
import type { ClaimContext } from "./context.ts";
import type { Unpreparation } from "./unpreparation.ts";

type Context = ClaimContext & { use: ClaimUse; unpreparation: Unpreparation };

// A claim that the kubelet must unprepare again is checked at this interval, together with all claims of its driver.
const LOOK_AGAIN_MS = 30_000;
// Delay after a failed call: another pod may already use the claim.
const SOON_MS = 1_000;

/**
 * Claims whose unprepare was started but not completed. After a failed call to unprepare, the kubelet calls
 * again, unless another pod uses the claim by then: it considers the claim prepared for that pod, and does
 * not call at all (pkg/kubelet/cm/dra/manager.go).
 */
export class InterruptedUnprepare {
  readonly #context: Context;
  // Number of the kubelet's calls in progress, by driver and UID of the claim.
  readonly #calls = new Map<string, number>();

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Runs a call of the kubelet to unprepare a claim. If the unprepare was started but not completed, queues the driver
   * for reconciliation after 1 s.
   */
  async during(driver: string, uid: string, call: () => Promise<void>): Promise<void> {
    const { queue, records } = this.#context;
    const key = `${driver}/${uid}`;
    this.#calls.set(key, (this.#calls.get(key) ?? 0) + 1);
    try {
      await call();
    } finally {
      const left = this.#calls.get(key)! - 1;
      if (left > 0) this.#calls.set(key, left);
      else this.#calls.delete(key);
      if (records.get(driver, uid)?.state === "unpreparing") queue.addAfter(driver, SOON_MS);
    }
  }

  /**
   * Completes the unprepare of a claim that has ended or that the kubelet considers unprepared. Returns whether the
   * claim must be prepared again because the kubelet has started pods with it; the claim is then recorded as lost. Does
   * nothing if the driver disconnects meanwhile. Must be called within `Unpreparation.exclusively`, while the driver is
   * connected.
   */
  async resume(record: ClaimRecord, signal: AbortSignal): Promise<boolean> {
    const { allocations, drivers, queue, records, unpreparation, use } = this.#context;
    const { driver, uid, devices, details, state } = record;
    const allocation = state === "unpreparing" ? await allocations.current(record, signal) : undefined;
    if (!allocation) {
      await unpreparation.run(driver, record, signal);
      return false;
    }
    if (this.#calls.has(`${driver}/${uid}`)) return false;
    const users = await use.started(record, allocation.pods, signal);
    const connection = drivers.get(driver)?.connection;
    if (users.length === 0 || !connection) {
      if (use.isRuntimeRead) queue.addAfter(driver, LOOK_AGAIN_MS);
      return false;
    }
    const { pods } = records.get(driver, uid) ?? record;
    // A running container may have the device, or belong to one of these pods and lack it.
    if (await use.isFree({ ...record, pods }, signal))
      await connection.client?.unprepare(record, { devices, pods, details }, signal);
    await records.reopen(driver, uid);
    return true;
  }
}
