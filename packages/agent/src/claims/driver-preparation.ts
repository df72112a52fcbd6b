import { ClaimNotPreparable, DriverFailed } from "@nodekeeper/api/errors";
import type { Allocation } from "./allocation.ts";
import { refuseTakenInterfaces } from "./claim-interfaces.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { type ClaimRecord, isEnding, unprepared } from "./claim-records.ts";
import type { ClaimUse } from "./claim-use.ts";
import type { ClaimContext } from "./context.ts";
import { metadataMounts, metadataOf, POD_CLAIM_NAME } from "./device-metadata.ts";
import type { HandOn } from "./hand-on.ts";
import { preparedOf, withoutEdits } from "./prepared-claim.ts";
import type { PreparedDevice } from "./recorded-devices.ts";
import type { Unpreparation } from "./unpreparation.ts";

type Context = ClaimContext & { use: ClaimUse; unpreparation: Unpreparation; handOn: HandOn };

/** A claim whose devices of a driver are not prepared, and its record. */
export interface ClaimToPrepare {
  driver: string;
  claim: ClaimReference;
  allocation: Allocation;
  known: ClaimRecord | undefined;
}

/** Prepares claims by calling their driver. */
export class DriverPreparation {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Prepares a claim that is not prepared, and records it. Call it within `Unpreparation.exclusively`.
   * @param underway aborts until the driver is called
   */
  async run(
    toPrepare: ClaimToPrepare,
    signal: AbortSignal,
    underway = signal,
  ): Promise<readonly PreparedDevice[]> {
    try {
      return await this.#run(toPrepare, signal, underway);
    } catch (error) {
      this.#context.problems.preparationFailed(toPrepare.driver, toPrepare.claim.uid, error);
      throw error;
    }
  }

  async #run(
    { driver, claim, allocation, known }: ClaimToPrepare,
    signal: AbortSignal,
    underway: AbortSignal,
  ): Promise<readonly PreparedDevice[]> {
    const { allocations, records, directory, host, drivers, use, unpreparation, handOn, log } = this.#context;
    if (allocation.devices.length === 0)
      throw new ClaimNotPreparable({ problem: `the claim has no devices of driver ${driver}` });
    const connection = drivers.get(driver)?.connection;
    if (!connection) throw new DriverFailed({ driver, problem: "it is not connected to Nodekeeper" });
    const devices = unprepared(allocation.devices);
    if (!connection.client && !this.#context.reportedDevice) return devices;
    // With other devices it is unprepared and recorded like any other.
    const isRepeated =
      known?.state === "prepared" && records.isDoubtful(known) && records.isOf(known, allocation.devices);
    // The driver may have prepared the recorded devices. With other devices it is not a retry.
    const isRetry =
      known?.state === "preparing" && (records.isOfOldBoot(known) || records.isOf(known, allocation.devices));
    // Deallocated and allocated again without a call by the kubelet, or not yet unprepared.
    if (known && !isRetry && !isRepeated) {
      if (!isEnding(known)) use.checkKnown(known);
      await unpreparation.run(driver, known, signal);
    }
    const { details } = allocation;
    const [pods] = await Promise.all([
      connection.client?.takesAccounts
        ? allocations.withAccounts(claim, allocation.pods, underway)
        : allocation.pods,
      connection.client?.restored?.(underway),
    ]);
    underway.throwIfAborted();
    // The record that follows reserves the devices: nothing may be awaited in between.
    handOn.refuseConflicts(driver, claim.uid, allocation.devices);
    // The record must still show that the kubelet was answered earlier and does not call again.
    if (!isRepeated) {
      await records.save(driver, claim, { state: "preparing", devices, pods, details, cdi: "" });
      underway.throwIfAborted();
    }
    const answer = connection.client
      ? await connection.client.prepare(claim, { ...allocation, pods }, signal)
      : withoutEdits(allocation);
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
    // If the driver registered again meanwhile, RestoreClaims listed this claim as not prepared. Nothing may be awaited
    // until it is recorded as prepared.
    const now = drivers.get(driver)?.connection;
    if (now && now.client !== connection.client)
      throw new DriverFailed({ driver, problem: "it registered again while it prepared the claim" });
    if (prepared.cdi !== "") directory.write(driver, uid, prepared.cdi);
    // Another call may have recorded a pod while the driver was called. Pods recorded before the machine's last boot
    // are dropped, because their containers no longer run.
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
