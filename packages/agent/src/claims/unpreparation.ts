import { NodekeeperError, Semaphore } from "@nodekeeper/core/lib";
import type { ClaimReference } from "./claim-reader.ts";
import { type ClaimRecord, isEnding } from "./claim-records.ts";
import type { ClaimUse } from "./claim-use.ts";
import type { ClaimContext } from "./context.ts";

type Context = ClaimContext & { use: ClaimUse };

const NOT_KEPT =
  "the driver is disconnected, and the state directory is not writable: that the claim must be unprepared can't be recorded";

/** Unprepares claims. */
export class Unpreparation {
  readonly #context: Context;
  // By driver and UID of the claim.
  readonly #locks = new Map<string, { semaphore: Semaphore; users: number }>();

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Runs `work` exclusively for a claim, in the order of the calls. Work for other claims runs concurrently. Rejects
   * with the signal's reason if it aborts before `work` starts.
   */
  async exclusively<T>(driver: string, uid: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const key = `${driver}/${uid}`;
    const lock = this.#locks.get(key) ?? { semaphore: new Semaphore({ permits: 1 }), users: 0 };
    this.#locks.set(key, lock);
    lock.users++;
    try {
      return await lock.semaphore.run(signal, work);
    } finally {
      if (--lock.users === 0) this.#locks.delete(key);
    }
  }

  /** Returns whether work for a claim is in progress or waits. */
  isUnderWay(driver: string, uid: string): boolean {
    return this.#locks.has(`${driver}/${uid}`);
  }

  /**
   * Unprepares a claim. Must be called within `exclusively`. If the driver is disconnected, its part is deferred until
   * it reconnects. Throws StillUsedError if a container of the claim's pods has not exited, `unavailable` if the
   * deferral would not survive the agent, and the driver's error if it fails.
   * @param call aborts when the kubelet's call has ended; undefined if the kubelet did not call. If it aborts before
   * the claim is unprepared, the record stays until the kubelet calls again, or the claim turns out to be in use or to
   * have ended.
   */
  async run(driver: string, claim: ClaimReference, signal: AbortSignal, call?: AbortSignal): Promise<void> {
    const { records, directory, drivers, queue, log } = this.#context;
    const { namespace, name, uid } = claim;
    const record = records.get(driver, uid);
    const connection = drivers.get(driver)?.connection;
    const { devices, pods, details } = record ?? { devices: [], pods: [] };
    // Until the containers have exited, they may have network interfaces that the text names.
    const cdi = { unpreparing: record?.cdi ?? "", unprepared: "" };
    const save = (state: "unpreparing" | "unprepared") =>
      records.save(driver, claim, { state, devices, pods, details, cdi: cdi[state], boot: record?.boot });
    // Also without a record, which may be lost although the driver has prepared the claim.
    const mayBePrepared = record !== undefined || connection?.client !== undefined || !connection;
    if (mayBePrepared && !(record && isEnding(record))) await save("unpreparing");
    // After success the kubelet does not call again. If the deferral can't be recorded, keep the CDI file.
    if (!connection && !records.isKept) throw new NodekeeperError("unavailable", NOT_KEPT);
    await directory.remove(driver, uid);
    if (record) await this.#checkUnused(record, signal);
    if (!connection) {
      if (record?.state !== "unprepared") await save("unprepared");
      queue.add(driver);
      log.info(
        { driver, claim: { namespace, name } },
        "driver is disconnected: the claim is unprepared when it reconnects",
      );
      return;
    }
    await connection.client?.unprepare(claim, { devices, pods, details }, signal);
    if (call?.aborted) return;
    await records.remove(driver, uid);
    log.info({ driver, claim: { namespace, name } }, "claim unprepared");
  }

  // Even if the kubelet does not call again, the record is reconciled until the containers have exited.
  async #checkUnused(record: ClaimRecord, signal: AbortSignal): Promise<void> {
    try {
      await this.#context.use.check(record, signal);
    } catch (error) {
      // A claim being unprepared is already retried with backoff.
      if (!isEnding(record)) this.#context.queue.add(record.driver);
      throw error;
    }
  }
}
