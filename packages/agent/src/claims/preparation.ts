import { ClaimNotPreparable, DriverFailed } from "@nodekeeper/api/errors";
import { childScope, NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { Allocation } from "./allocation.ts";
import { restoreFile } from "./cdi-check.ts";
import { refuseTakenInterfaces } from "./claim-interfaces.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { type ClaimRecord, isEnding, unprepared } from "./claim-records.ts";
import { ClaimUse } from "./claim-use.ts";
import type { ClaimContext, KubeletCall } from "./context.ts";
import { metadataMounts, metadataOf, POD_CLAIM_NAME } from "./device-metadata.ts";
import { HandOn } from "./hand-on.ts";
import { preparedOf, withoutEdits } from "./prepared-claim.ts";
import type { PreparedDevice } from "./recorded-devices.ts";
import { Unpreparation } from "./unpreparation.ts";

// A UID is part of a file's name.
const uidPattern = /^[A-Za-z0-9-]{1,64}$/;

/** A claim whose devices of a driver are not prepared, and its record. */
interface ClaimToPrepare {
  driver: string;
  claim: ClaimReference;
  allocation: Allocation;
  known: ClaimRecord | undefined;
}

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

  constructor(context: ClaimContext) {
    this.#context = context;
    const use = new ClaimUse(context);
    this.#use = use;
    this.#unpreparation = new Unpreparation({ ...context, use });
    this.#handOn = new HandOn({ ...context, use, unpreparation: this.#unpreparation });
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
        return await this.#prepareAgain({ driver, claim, allocation, known }, signal, underway);
      // A driver that has registered again may have lost it.
      await this.#context.drivers.get(driver)?.connection?.client?.restored?.(underway);
      const current = this.#context.records.get(driver, claim.uid);
      if (!this.#context.records.isPrepared(current, allocation.devices))
        return await this.#prepareAgain({ driver, claim, allocation, known: current }, signal, underway);
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
        await this.#unpreparation.run(driver, claim, signal);
      });
    await this.#use.whenUnused(work, { ...call, signal: scope.signal });
  }

  /**
   * Reconciles one claim: completes an interrupted unprepare, prepares it again after a reboot or if its driver has lost
   * it, and writes a missing CDI file.
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
        if (isConnected()) await this.#unpreparation.run(driver, record, signal);
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
   * Removes the CDI file of a claim whose preparation is lost: no container may start with it, however long the driver takes
   * to prepare the claim again.
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
   * Removes the record and the CDI file of a claim for which the kubelet no longer calls the agent, if the claim is to be
   * unprepared or has ended as by `hasEnded`. A claim that a failed call may have prepared is kept until then, because the
   * driver may return to the agent. Returns whether it did.
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
  async #renew(record: ClaimRecord, signal: AbortSignal): Promise<void> {
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
      : "because its driver had lost it";
    await this.#prepareAgain({ driver, claim: record, allocation, known: record }, signal);
    log.info({ driver, claim: { namespace, name } }, `claim prepared again ${reason}`);
  }

  async #prepareAgain(
    { driver, claim, allocation, known }: ClaimToPrepare,
    signal: AbortSignal,
    underway = signal,
  ): Promise<readonly PreparedDevice[]> {
    const { allocations, records, directory, host, drivers, log } = this.#context;
    if (allocation.devices.length === 0)
      throw new ClaimNotPreparable({ problem: `the claim has no devices of driver ${driver}` });
    const connection = drivers.get(driver)?.connection;
    if (!connection) throw new DriverFailed({ driver, problem: "it is not connected to Nodekeeper" });
    const devices = unprepared(allocation.devices);
    if (!connection.client && !this.#context.reportedDevice) return devices;
    // With other devices it is unprepared and recorded like any other.
    const isLost =
      known?.state === "prepared" && records.isLost(known) && records.isOf(known, allocation.devices);
    // The driver may have prepared the recorded devices. With other devices it is not a retry.
    const isRetry =
      known?.state === "preparing" && (records.isOfOldBoot(known) || records.isOf(known, allocation.devices));
    // Deallocated and allocated again without a call by the kubelet, or not yet unprepared.
    if (known && !isRetry && !isLost) {
      if (!isEnding(known)) this.#use.checkKnown(known);
      await this.#unpreparation.run(driver, known, signal);
    }
    await connection.client?.restored?.(underway);
    const { details } = allocation;
    const pods = connection.client?.takesAccounts
      ? await allocations.withAccounts(claim, allocation.pods, underway)
      : allocation.pods;
    underway.throwIfAborted();
    // The record that follows reserves the devices: nothing may be awaited in between.
    this.#handOn.refuseConflicts(driver, claim.uid, allocation.devices);
    // The record must keep that the kubelet was answered before, and does not call again.
    if (!isLost) {
      await records.save(driver, claim, { state: "preparing", devices, pods, details, cdi: "" });
      underway.throwIfAborted();
    }
    const answer = connection.client
      ? await connection.client.prepare(claim, { ...allocation, pods }, signal)
      : withoutEdits(allocation);
    // A driver that has registered again meanwhile was told that this claim is not prepared.
    const now = drivers.get(driver)?.connection;
    if (now && now.client !== connection.client)
      throw new DriverFailed({ driver, problem: "it registered again while it prepared the claim" });
    const { namespace, name, uid } = claim;
    const { metadata, mounts } = this.#metadataOf(driver, claim, allocation);
    const owner = {
      driver,
      namespace,
      name,
      uid,
      boot: records.boot,
      driverUid: connection.uid,
      pods,
      metadata,
    };
    const rules = host.forDriverOf(connection.uid);
    const prepared = await preparedOf(owner, allocation.devices, answer, rules, mounts);
    refuseTakenInterfaces(prepared.cdi, { driver, uid }, records.all());
    if (prepared.cdi === "") await directory.remove(driver, uid);
    else directory.write(driver, uid, prepared.cdi);
    // Another call may have recorded a pod while the driver was called. Containers of an earlier boot are gone.
    const isOfOldBoot = known?.state === "prepared" && records.isOfOldBoot(known);
    const { pods: recorded = [] } = (isOfOldBoot ? undefined : records.get(driver, uid)) ?? {};
    const added = recorded.filter((pod) => !pods.some((each) => each.uid === pod.uid));
    await records.save(driver, claim, { state: "prepared", ...prepared, details, pods: [...pods, ...added] });
    log.info({ driver, claim: { namespace, name }, devices: devices.length }, "claim prepared");
    return prepared.devices;
  }

  #metadataOf(driver: string, { namespace, name, uid }: ClaimReference, allocation: Allocation) {
    const { reportedDevice, directory } = this.#context;
    if (!reportedDevice) return {};
    const claim = {
      driver,
      namespace,
      name,
      uid,
      podClaimName: allocation.details?.annotations[POD_CLAIM_NAME],
    };
    const metadata = metadataOf(claim, allocation.devices, reportedDevice);
    const fileOf = (request: string) => directory.metadataOf(driver, uid, request);
    return { metadata, mounts: metadataMounts(claim, metadata, fileOf) };
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
