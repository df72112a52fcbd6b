import { codeOf, type Logger, messageOf, NodekeeperError, quote } from "@nodekeeper/core/lib";
import { type Allocation, allocationOf, type DeviceIdentity, isExclusive } from "./allocation.ts";
import { type PreparedDevice, preparedOf } from "./cdi-file.ts";
import type { CdiFolder } from "./cdi-folder.ts";
import type { ClaimReader, ClaimReference } from "./claim-reader.ts";
import { type ClaimRecord, type ClaimRecords, isEnding, unprepared } from "./claim-records.ts";
import type { DriverClient } from "./driver-client.ts";
import type { HostFiles } from "./host-files.ts";
import { KeyedLock } from "./keyed-lock.ts";

/** A driver that is connected now. */
export interface ConnectedDriver {
  /** Undefined where its devices need no preparation. */
  client: Pick<DriverClient, "prepare" | "unprepare"> | undefined;
}

export interface PreparationOptions {
  reader: Pick<ClaimReader, "read">;
  records: ClaimRecords;
  folder: CdiFolder;
  host: HostFiles;
  /** Undefined while the driver is disconnected. */
  connected: (driver: string) => ConnectedDriver | undefined;
  /** A claim was left to a disconnected driver: the kubelet need not wait for it any more. */
  onLeft: (driver: string) => void;
  log: Logger;
}

// A UID is part of a file's name.
const uidPattern = /^[A-Za-z0-9-]{1,64}$/;
const nothing = { devices: [], cdi: "" };

/**
 * Prepares claims by one driver each, and undoes it. Killed between any two steps and started again, it continues:
 *
 * 1. A record states that a driver is called before it is called, and what was prepared before the kubelet is answered.
 * 2. What the kubelet was answered has its CDI file: the file is written before the record, and removed before it.
 * 3. Steps for one claim never overlap; those for different claims do.
 * 4. A device that an ended claim had is unprepared before it is prepared for the next one.
 */
export class Preparation {
  readonly #options: PreparationOptions;
  readonly #locks = new KeyedLock();

  constructor(options: PreparationOptions) {
    this.#options = options;
  }

  /**
   * Prepares what a claim was allocated of a driver; answers from the record where that is done already.
   * Throws what concerns this claim alone: `unavailable` where the driver is disconnected, `invalid` where its answer breaks
   * a rule, and as reading the claim and asking the driver do.
   */
  async prepare(
    driver: string,
    claim: ClaimReference,
    signal: AbortSignal,
  ): Promise<readonly PreparedDevice[]> {
    checkReference(claim);
    const { records } = this.#options;
    const allocation = await this.#readAllocation(driver, claim, signal);
    const exclusive = allocation.devices.filter(({ adminAccess }) => !adminAccess);
    await this.#release(driver, claim.uid, exclusive, signal);
    return await this.#locks.run(`${driver}/${claim.uid}`, async () => {
      const known = records.get(driver, claim.uid);
      if (records.isPrepared(known, allocation.devices)) {
        await this.#restoreFile(known);
        return known.devices;
      }
      return await this.#prepareAgain(driver, claim, allocation, known, signal);
    });
  }

  /**
   * Undoes it. While the driver is disconnected its part is left for later, and the kubelet need not wait: a driver may
   * never come back. Throws where the driver fails.
   */
  async unprepare(driver: string, claim: ClaimReference, signal: AbortSignal): Promise<void> {
    checkReference(claim);
    await this.#locks.run(`${driver}/${claim.uid}`, () => this.#unprepare(driver, claim, signal));
  }

  /**
   * Reconciles one claim: unprepares one whose unpreparing was interrupted, prepares one again that was prepared before the
   * machine was restarted, and writes a missing CDI file.
   */
  async reconcile(driver: string, uid: string, signal: AbortSignal): Promise<void> {
    const { records, connected, folder } = this.#options;
    const before = records.get(driver, uid);
    if (before?.state === "prepared" && records.isOfOldBoot(before) && connected(driver))
      await this.#release(driver, uid, before.devices, signal);
    await this.#locks.run(`${driver}/${uid}`, async () => {
      const record = records.get(driver, uid);
      if (!record) return;
      if (isEnding(record)) {
        await folder.remove(driver, uid);
        if (connected(driver)) await this.#unprepare(driver, record, signal);
        return;
      }
      if (!records.isOfOldBoot(record)) {
        if (record.state === "prepared") await this.#restoreFile(record);
        return;
      }
      // No container starts with a device that is not set up any more.
      await folder.remove(driver, uid);
      if (connected(driver)) await this.#renew(record, signal);
    });
  }

  /** Whether a claim does not exist any more, or is not allocated the recorded devices. False without a record. */
  async hasEnded(driver: string, uid: string, signal: AbortSignal): Promise<boolean> {
    const record = this.#options.records.get(driver, uid);
    return record !== undefined && (await this.#currentAllocation(record, signal)) === undefined;
  }

  /** Unprepares a claim that has ended, by `hasEnded`. Answers whether it has. */
  async unprepareEnded(driver: string, uid: string, signal: AbortSignal): Promise<boolean> {
    return await this.#locks.run(`${driver}/${uid}`, async () => {
      const record = this.#options.records.get(driver, uid);
      if (!record || (await this.#currentAllocation(record, signal))) return false;
      await this.#unprepare(driver, record, signal);
      return true;
    });
  }

  // Not within the lock of the claim that gets the devices: two claims could wait for each other.
  async #release(
    driver: string,
    uid: string,
    devices: readonly DeviceIdentity[],
    signal: AbortSignal,
  ): Promise<void> {
    const { records } = this.#options;
    const holders = records
      .of(driver)
      .filter((other) => other.uid !== uid && devices.some((device) => holds(other, device)));
    for (const other of holders) {
      await this.#locks.run(`${driver}/${other.uid}`, async () => {
        const record = records.get(driver, other.uid);
        if (!record) return;
        // The other claim may have it for monitoring.
        if (!isEnding(record) && (await this.#currentAllocation(record, signal))) return;
        try {
          await this.#unprepare(driver, record, signal);
        } catch (error) {
          const holder = `ResourceClaim ${record.namespace}/${record.name}`;
          const message = `a device is not unprepared yet for ${holder}, which had it before: ${messageOf(error)}`;
          throw new NodekeeperError(codeOf(error), message, { cause: error });
        }
      });
    }
  }

  // Undefined where the claim does not exist any more, or has other devices than were recorded.
  async #currentAllocation(record: ClaimRecord, signal: AbortSignal): Promise<Allocation | undefined> {
    const { records } = this.#options;
    try {
      const allocation = await this.#readAllocation(record.driver, record, signal);
      return records.isOf(record, allocation.devices) ? allocation : undefined;
    } catch (error) {
      const code = codeOf(error);
      if (code !== "notFound" && code !== "conflict") throw error;
      return undefined;
    }
  }

  async #readAllocation(driver: string, claim: ClaimReference, signal: AbortSignal): Promise<Allocation> {
    const { reader, records } = this.#options;
    const allocation = allocationOf(await reader.read(claim, signal), driver);
    const pods = allocation.pods.map(({ name }) => `${claim.namespace}/${name}`);
    if (allocation.devices.length > 0) records.reservedFor(driver, claim.uid, pods);
    return allocation;
  }

  // The kubelet takes the claim for prepared, and does not ask again.
  async #renew(record: ClaimRecord, signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    const { driver, namespace, name } = record;
    const allocation = await this.#currentAllocation(record, signal);
    if (!allocation) {
      log.info(
        { driver, claim: { namespace, name } },
        "claim of an earlier boot does not exist any more, or has other devices: unprepared",
      );
      await this.#unprepare(driver, record, signal);
      return;
    }
    if (record.state === "preparing") return;
    await this.#prepareAgain(driver, record, allocation, record, signal);
    log.info({ driver, claim: { namespace, name } }, "claim prepared again after the machine's restart");
  }

  async #prepareAgain(
    driver: string,
    claim: ClaimReference,
    allocation: Allocation,
    known: ClaimRecord | undefined,
    signal: AbortSignal,
  ): Promise<readonly PreparedDevice[]> {
    const { records, folder, host, connected, log } = this.#options;
    if (allocation.devices.length === 0)
      throw new NodekeeperError("conflict", `the claim has no devices of driver ${driver}`, { id: "NK1506" });
    const connection = connected(driver);
    if (!connection)
      throw new NodekeeperError("unavailable", `driver ${driver} is not connected to Nodekeeper`, {
        id: "NK1508",
      });
    const identities = unprepared(allocation.devices);
    if (!connection.client) return identities;
    const isOfOldBoot = known?.state === "prepared" && records.isOfOldBoot(known);
    // The driver may have prepared the recorded devices: others are no retry.
    const isRetry =
      known?.state === "preparing" && (records.isOfOldBoot(known) || records.isOf(known, allocation.devices));
    // Deallocated and allocated again without a word of the kubelet, or not undone yet.
    if (known && !isRetry && !isOfOldBoot) await this.#unprepare(driver, known, signal);
    // The kubelet was answered in the earlier boot and does not ask again: the record keeps that.
    if (!isOfOldBoot) records.save(driver, claim, "preparing", { devices: identities, cdi: "" });
    const answer = await connection.client.prepare(claim, allocation, signal);
    const { namespace, name, uid } = claim;
    const owner = { driver, namespace, name, uid, boot: records.boot };
    const prepared = await preparedOf(owner, allocation.devices, answer, host);
    if (prepared.cdi === "") await folder.remove(driver, uid);
    else folder.write(driver, uid, prepared.cdi);
    records.save(driver, claim, "prepared", prepared);
    log.info({ driver, claim: { namespace, name }, devices: identities.length }, "claim prepared");
    return prepared.devices;
  }

  async #unprepare(driver: string, claim: ClaimReference, signal: AbortSignal): Promise<void> {
    const { records, folder, connected, onLeft, log } = this.#options;
    const { namespace, name, uid } = claim;
    const record = records.get(driver, uid);
    const connection = connected(driver);
    const devices = record?.devices ?? [];
    const state = connection ? "unpreparing" : "unprepared";
    // Also without a record: that may have been lost, and the driver may know the claim.
    const isNew = record?.state !== state && record?.state !== "unprepared";
    if ((connection?.client || !connection) && isNew)
      records.save(driver, claim, state, { ...nothing, devices }, record?.boot);
    if (!connection) {
      await folder.remove(driver, uid);
      onLeft(driver);
      log.info(
        { driver, claim: { namespace, name } },
        "driver is disconnected: it undoes the claim when it is back",
      );
      return;
    }
    await connection.client?.unprepare(claim, devices, signal);
    await folder.remove(driver, uid);
    records.remove(driver, uid);
    log.info({ driver, claim: { namespace, name } }, "claim unprepared");
  }

  async #restoreFile({ driver, uid, namespace, name, cdi }: ClaimRecord): Promise<void> {
    if (cdi === "") return;
    const { folder, log } = this.#options;
    if ((await folder.read(driver, uid)) === cdi) return;
    folder.write(driver, uid, cdi);
    log.warn(
      { errorId: "NK1510", driver, claim: { namespace, name } },
      "CDI file was removed or changed: written again",
    );
  }
}

function holds({ devices }: ClaimRecord, device: DeviceIdentity): boolean {
  return devices.some((each) => isExclusive(each, device));
}

function checkReference({ uid, name, namespace }: ClaimReference): void {
  if (!uidPattern.test(uid))
    throw new NodekeeperError("invalid", `${quote(uid)} is not the UID of a ResourceClaim`);
  if (name === "" || namespace === "")
    throw new NodekeeperError("invalid", `ResourceClaim ${uid} has no name or no namespace`);
}
