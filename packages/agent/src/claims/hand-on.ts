import { ClaimInUse, DeviceClaimedTwice } from "@nodekeeper/api/errors";
import { codeOf, errorIdOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import { type AllocatedDevice, type Allocation, isExclusive } from "./allocation.ts";
import { type ClaimRecord, isEnding } from "./claim-records.ts";
import type { ClaimUse } from "./claim-use.ts";
import type { ClaimContext, KubeletCall } from "./context.ts";
import type { Unpreparation } from "./unpreparation.ts";

type Context = ClaimContext & { use: ClaimUse; unpreparation: Unpreparation };

/** A claim and its devices of one driver. */
interface Holder {
  namespace: string;
  name: string;
  devices: readonly AllocatedDevice[];
}

/** Releases devices from ended claims for the claim that they are now allocated to. */
export class HandOn {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Unprepares ended claims that had the devices, once their containers have exited. Do not call it while holding the
   * lock of the claim that gets the devices: two claims could deadlock. Throws if an ended claim's devices stay in use
   * or the driver fails, and `conflict` with NK1515 if an existing claim has one of the devices.
   */
  async release(
    driver: string,
    uid: string,
    devices: readonly AllocatedDevice[],
    call: KubeletCall,
  ): Promise<void> {
    const releases = this.#holders(driver, uid, devices).map((holder) =>
      this.#release(driver, holder, devices, call),
    );
    // Concurrently, because the kubelet's timeout covers all of them.
    const failed = (await Promise.allSettled(releases)).find(({ status }) => status === "rejected");
    if (failed) throw (failed as PromiseRejectedResult).reason;
  }

  async #release(
    driver: string,
    { uid: holder, namespace, name }: ClaimRecord,
    devices: readonly AllocatedDevice[],
    call: KubeletCall,
  ): Promise<void> {
    const { signal } = call;
    const work = () =>
      this.#context.unpreparation.exclusively(driver, holder, signal, () =>
        this.#releaseFrom(driver, holder, devices, signal),
      );
    try {
      await this.#context.use.whenUnused(work, call);
    } catch (error) {
      signal.throwIfAborted();
      if (errorIdOf(error) === DeviceClaimedTwice.id) throw error;
      const message = `a device is not unprepared yet for ResourceClaim ${namespace}/${name}, which had it before: ${messageOf(error)}`;
      throw new NodekeeperError(codeOf(error), message, { cause: error });
    }
  }

  async #releaseFrom(
    driver: string,
    holder: string,
    devices: readonly AllocatedDevice[],
    signal: AbortSignal,
  ): Promise<void> {
    const record = this.#context.records.get(driver, holder);
    if (!record || !devices.some((device) => holds(record, device))) return;
    if (!isEnding(record)) {
      const current = await this.#context.allocations.current(record, signal);
      if (current) return refuseShared({ ...record, devices: current.devices }, devices);
      this.#context.use.checkKnown(record);
    }
    await this.#context.unpreparation.run(driver, record, signal);
  }

  /**
   * Waits for the containers of pods that the claim is no longer reserved for, and removes these pods from its record.
   */
  async untilPodsLeft(before: ClaimRecord, { pods }: Allocation, call: KubeletCall): Promise<void> {
    const left = before.pods.filter((pod) => !pods.some(({ uid }) => uid === pod.uid));
    if (left.length === 0) return;
    await this.#context.use.whenUnused(
      () => this.#context.use.check({ ...before, pods: left }, call.signal),
      call,
    );
    await this.#context.records.removePods(before.driver, before.uid, left);
  }

  /**
   * Throws `conflict` if another claim is recorded with one of the devices, or if a claim that may have had one is
   * being unprepared. Call it in the same turn of the event loop in which the claim is recorded: of two claims prepared
   * concurrently, the second then finds the first.
   */
  refuseConflicts(driver: string, uid: string, devices: readonly AllocatedDevice[]): void {
    this.#refuseUnknown(driver, uid);
    for (const holder of this.#holders(driver, uid, devices)) refuseShared(holder, devices);
  }

  // A claim whose record may have been lost: the devices that its driver is freeing are not known.
  #refuseUnknown(driver: string, uid: string): void {
    const { records, unpreparation } = this.#context;
    if (!records.mayLackClaims) return;
    const unknown = records
      .of(driver)
      .filter(({ devices }) => devices.length === 0)
      .find((claim) => claim.uid !== uid && unpreparation.isUnderWay(driver, claim.uid));
    if (!unknown) return;
    const claim = `ResourceClaim ${unknown.namespace}/${unknown.name}`;
    throw new ClaimInUse({ problem: `${claim} is being unprepared, and its devices are not recorded` });
  }

  #holders(driver: string, uid: string, devices: readonly AllocatedDevice[]): ClaimRecord[] {
    return this.#context.records
      .of(driver)
      .filter((other) => other.uid !== uid && devices.some((device) => holds(other, device)));
  }
}

// Devices with adminAccess, for monitoring, may be prepared for several claims.
function holds({ devices }: Pick<Holder, "devices">, device: AllocatedDevice): boolean {
  return !device.adminAccess && devices.some((each) => !each.adminAccess && isExclusive(each, device));
}

function refuseShared(holder: Holder, devices: readonly AllocatedDevice[]): void {
  const shared = devices.find((device) => holds(holder, device));
  if (!shared) return;
  const message = `device ${shared.pool}/${shared.device} is prepared for ResourceClaim ${holder.namespace}/${holder.name}, which is allocated it as well: a device is prepared for one claim at a time`;
  throw new DeviceClaimedTwice({ problem: message });
}
