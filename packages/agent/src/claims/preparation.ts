import { childScope, NodekeeperError, quote } from "@nodekeeper/core/lib";
import { restoreFile } from "./cdi-check.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { type ClaimRecord, isEnding } from "./claim-records.ts";
import { ClaimUse } from "./claim-use.ts";
import type { ClaimContext, KubeletCall } from "./context.ts";
import { DriverPreparation } from "./driver-preparation.ts";
import { HandOn } from "./hand-on.ts";
import { InterruptedUnprepare } from "./interrupted-unprepare.ts";
import type { PreparedDevice } from "./recorded-devices.ts";
import { Unpreparation } from "./unpreparation.ts";

// A UID is part of a file's name.
const uidPattern = /^[A-Za-z0-9-]{1,64}$/;

/**
 * Prepares and unprepares claims, each for one driver. It can be killed between any two steps and resumes after a
 * restart:
 *
 * 1. A call to the driver is recorded before it is made, and its result before the kubelet is answered.
 * 2. Devices returned to the kubelet have their CDI file: it is written before the record, and removed before it.
 * 3. Steps for one claim never overlap; those for different claims do.
 * 4. A device of an ended claim is unprepared before it is prepared for the next claim.
 * 5. A claim is unprepared once all containers of its pods have exited, as the container runtime reports. Its CDI file
 *    is removed before the runtime is read, so that no container is created with it afterwards.
 * 6. A device is prepared for one claim at a time, except for shares and claims with adminAccess.
 * 7. A prepare whose call has ended does not call the driver.
 */
export class Preparation {
  readonly #context: ClaimContext;
  readonly #use: ClaimUse;
  readonly #unpreparation: Unpreparation;
  readonly #handOn: HandOn;
  readonly #driverPreparation: DriverPreparation;
  readonly #interrupted: InterruptedUnprepare;

  constructor(context: ClaimContext) {
    this.#context = context;
    const use = new ClaimUse(context);
    this.#use = use;
    const unpreparation = new Unpreparation({ ...context, use });
    this.#unpreparation = unpreparation;
    this.#interrupted = new InterruptedUnprepare({ ...context, use, unpreparation });
    this.#handOn = new HandOn({ ...context, use, unpreparation });
    this.#driverPreparation = new DriverPreparation({ ...context, use, unpreparation, handOn: this.#handOn });
  }

  /**
   * Prepares a claim's allocated devices of a driver. Returns the recorded devices if they are already prepared. Throws
   * `unavailable` if the driver is disconnected, `invalid` if its answer is not valid, `conflict` while another claim
   * has one of the devices, and as reading the claim and calling the driver do.
   * @param call the kubelet's call; if it ends while the driver is called, the driver's call completes nevertheless, so
   * that calls for one claim do not overlap
   */
  async prepare(
    driver: string,
    claim: ClaimReference,
    signal: AbortSignal,
    call = unlimited(signal),
  ): Promise<readonly PreparedDevice[]> {
    checkReference(claim);
    using scope = childScope(signal, call.signal);
    const underway = scope.signal;
    const limits = { ...call, signal: underway };
    const before = this.#context.records.get(driver, claim.uid);
    const allocation = await this.#context.allocations.read(driver, claim, underway);
    await this.#handOn.release(driver, claim.uid, allocation.devices, limits);
    if (before) await this.#handOn.untilPodsLeft(before, allocation, limits);
    return await this.#unpreparation.exclusively(driver, claim.uid, underway, async () => {
      underway.throwIfAborted();
      const known = this.#context.records.get(driver, claim.uid);
      if (!this.#context.records.isPrepared(known, allocation.devices))
        return await this.#driverPreparation.run({ driver, claim, allocation, known }, signal, underway);
      // A driver that has registered again may have lost it.
      await this.#context.drivers.get(driver)?.connection?.client?.restored?.(underway);
      const current = this.#context.records.get(driver, claim.uid);
      if (!this.#context.records.isPrepared(current, allocation.devices))
        return await this.#driverPreparation.run(
          { driver, claim, allocation, known: current },
          signal,
          underway,
        );
      await restoreFile(this.#context, current);
      return current.devices;
    });
  }

  /**
   * Unprepares the claim. If the driver is disconnected, its part is deferred and the call succeeds: a driver may never
   * reconnect. Throws if the driver fails, or if containers still use the devices when the wait ends.
   */
  async unprepare(
    driver: string,
    claim: ClaimReference,
    signal: AbortSignal,
    call = unlimited(signal),
  ): Promise<void> {
    checkReference(claim);
    using scope = childScope(signal, call.signal);
    const { records } = this.#context;
    const isKnown = records.get(driver, claim.uid) !== undefined;
    let isRepeated = false;
    const work = () =>
      this.#unpreparation.exclusively(driver, claim.uid, signal, async () => {
        const record = records.get(driver, claim.uid);
        // Unprepared meanwhile for the next claim, or by a reconciliation.
        if (isKnown && !record) return;
        // Unprepared and prepared again meanwhile by a later call.
        if (isRepeated && record && !isEnding(record)) return;
        isRepeated = true;
        await this.#unpreparation.run(driver, claim, signal, call.signal);
      });
    await this.#interrupted.during(driver, claim.uid, () =>
      this.#use.whenUnused(work, { ...call, signal: scope.signal }),
    );
  }

  /**
   * Reconciles one claim. Completes an interrupted unprepare, unless the kubelet has to complete it. Writes a missing
   * CDI file. Prepares the claim again after a reboot, if the driver lost its preparation, or for pods that the kubelet
   * does not call for. Does nothing if the claim is not recorded.
   */
  async reconcile(driver: string, uid: string, signal: AbortSignal): Promise<void> {
    const { records, drivers, directory } = this.#context;
    const isConnected = () => drivers.get(driver)?.connection !== undefined;
    const before = records.get(driver, uid);
    if (before?.state === "prepared" && records.isLost(before) && isConnected())
      await this.#handOn.release(driver, uid, before.devices, unlimited(signal));
    await this.#unpreparation.exclusively(driver, uid, signal, async () => {
      const record = records.get(driver, uid);
      if (!record) return;
      if (isEnding(record)) {
        await directory.remove(driver, uid);
        if (isConnected() && (await this.#interrupted.resume(record, signal)))
          await this.#renew(records.get(driver, uid)!, signal, "for pods that the kubelet does not call for");
        return;
      }
      if (!records.isLost(record)) {
        if (record.state === "prepared") await restoreFile(this.#context, record);
        return;
      }
      // No container may start with a device that is no longer prepared.
      await directory.remove(driver, uid);
      if (isConnected()) await this.#renew(record, signal);
    });
  }

  /**
   * Removes the CDI file of a claim whose preparation is lost. No container may start with it before the driver has
   * prepared the claim again, however long that takes.
   */
  async withdrawIfLost(driver: string, uid: string, signal: AbortSignal): Promise<void> {
    const { records, directory } = this.#context;
    await this.#unpreparation.exclusively(driver, uid, signal, async () => {
      const record = records.get(driver, uid);
      if (record?.state === "prepared" && records.isLost(record)) await directory.remove(driver, uid);
    });
  }

  /**
   * Returns whether a claim no longer exists or is no longer allocated the recorded devices. False without a record.
   */
  async hasEnded(driver: string, uid: string, signal: AbortSignal): Promise<boolean> {
    const record = this.#context.records.get(driver, uid);
    return record !== undefined && (await this.#context.allocations.current(record, signal)) === undefined;
  }

  /** Unprepares a claim if it has ended as by `hasEnded`. Returns whether it did. */
  async unprepareEnded(driver: string, uid: string, signal: AbortSignal): Promise<boolean> {
    return await this.#unpreparation.exclusively(driver, uid, signal, async () => {
      const record = this.#context.records.get(driver, uid);
      if (!record || (await this.#context.allocations.current(record, signal))) return false;
      await this.#unpreparation.run(driver, record, signal);
      return true;
    });
  }

  /**
   * Removes the record and the CDI file of a claim for which the kubelet no longer calls the agent, if the claim has
   * ended (see `hasEnded`) or is unprepared or being unprepared. Returns whether they were removed. Until then, a claim
   * that a failed call may have prepared is kept, because the driver may register with the agent again.
   */
  async forgetEnded(driver: string, uid: string, signal: AbortSignal): Promise<boolean> {
    const { allocations, directory, records } = this.#context;
    return await this.#unpreparation.exclusively(driver, uid, signal, async () => {
      const record = records.get(driver, uid);
      if (!record) return false;
      if (!isEnding(record) && (await allocations.current(record, signal))) return false;
      await directory.remove(driver, uid);
      await records.remove(driver, uid);
      return true;
    });
  }

  // The kubelet considers the claim prepared and does not call again.
  async #renew(record: ClaimRecord, signal: AbortSignal, why?: string): Promise<void> {
    const { log, records } = this.#context;
    const { driver, namespace, name } = record;
    const allocation = await this.#context.allocations.current(record, signal);
    if (!allocation) {
      log.info(
        { driver, claim: { namespace, name } },
        "claim whose preparation is lost no longer exists or has other devices: unprepared",
      );
      await this.#unpreparation.run(driver, record, signal);
      return;
    }
    if (record.state === "preparing") return;
    const reason = records.isOfOldBoot(record)
      ? "after the machine's restart"
      : (why ?? "because its driver no longer had it");
    await this.#driverPreparation.run({ driver, claim: record, allocation, known: record }, signal);
    log.info({ driver, claim: { namespace, name } }, `claim prepared again ${reason}`);
  }
}

function unlimited(signal: AbortSignal): KubeletCall {
  return { signal, waitUntil: Number.POSITIVE_INFINITY };
}

function checkReference({ uid, name, namespace }: ClaimReference): void {
  if (!uidPattern.test(uid))
    throw new NodekeeperError("invalid", `${quote(uid)} is not the UID of a ResourceClaim`);
  if (name === "" || namespace === "")
    throw new NodekeeperError("invalid", `ResourceClaim ${uid} has no name or no namespace`);
}
