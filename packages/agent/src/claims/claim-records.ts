import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@nodekeeper/core/lib";
import type { ClaimStore, StoredClaim } from "../state/index.ts";
import {
  type AllocatedDevice,
  type Allocation,
  type ClaimPod,
  type DeviceIdentity,
  hasDevices,
  sameDevice,
} from "./allocation.ts";
import type { FileOwner } from "./cdi-file.ts";
import { ClaimCommits } from "./claim-commits.ts";
import type { ClaimDetails } from "./claim-details.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { devicesOfTexts, deviceTexts, type PreparedDevice } from "./recorded-devices.ts";

/** A claim's devices of one driver: a `StoredClaim` with its JSON parsed. */
export interface ClaimRecord extends Omit<StoredClaim, "devices" | "configuration" | "pods" | "details"> {
  devices: readonly PreparedDevice[];
  /** Pods whose containers may use the devices. */
  pods: readonly ClaimPod[];
  /** Undefined if they are not known: an older agent recorded the claim, or only its CDI file was left. */
  details?: ClaimDetails | undefined;
}

/** The recorded fields of a claim. Default for the boot: the current one. */
export type RecordedClaim = Pick<ClaimRecord, "state" | "devices" | "cdi" | "pods" | "details"> &
  Partial<Pick<ClaimRecord, "boot">>;

// The boot of a preparation that its driver has lost.
const LOST = "";

/**
 * The claims recorded in the state database, cached in memory. A change is visible at once, and its promise resolves
 * when it is committed. If the commit fails, such as on a full disk, the change is reverted and the promise rejects.
 */
export class ClaimRecords {
  readonly #store: ClaimStore;
  readonly #commits: ClaimCommits;
  readonly #boot: string;
  readonly #clock: Clock;
  // Claims whose CDI file must not be written, by driver and UID.
  readonly #withheld = new Set<string>();
  // Claims recorded before the start that may have been unprepared since, by driver and UID.
  readonly #unproven = new Set<string>();
  readonly #listeners: ((driver: string, uid: string) => void)[] = [];
  // By driver, then by UID.
  readonly #records = new Map<string, Map<string, ClaimRecord>>();

  /**
   * Whether prepared claims may be missing from the records, because the database may lack the last changes of the
   * previous agent.
   */
  readonly mayLackClaims: boolean;

  /**
   * @param boot ID of the machine's boot
   * @param isProven whether the database is proven to have everything that the previous agent recorded
   */
  constructor(store: ClaimStore, boot: string, clock: Clock, isProven = true) {
    this.mayLackClaims = !isProven;
    this.#store = store;
    this.#commits = new ClaimCommits((work) => store.together(work));
    this.#boot = boot;
    this.#clock = clock;
    for (const { configuration, ...stored } of store.claims()) {
      const devices = devicesOfTexts({ devices: stored.devices, configuration });
      const pods = JSON.parse(stored.pods) as ClaimPod[];
      const details = (JSON.parse(stored.details) as ClaimDetails | null) ?? undefined;
      this.#remember({ ...stored, devices, pods, details });
      if (!isProven) this.#unproven.add(`${stored.driver}/${stored.uid}`);
    }
  }

  get boot(): string {
    return this.#boot;
  }

  /** Whether changes survive the agent. */
  get isKept(): boolean {
    return this.#store.isPersistent;
  }

  /** Calls `listener` after each change of a claim's record. */
  subscribe(listener: (driver: string, uid: string) => void): void {
    this.#listeners.push(listener);
  }

  /** Sorted by name. */
  drivers(): string[] {
    return [...this.#records.keys()].sort();
  }

  get(driver: string, uid: string): ClaimRecord | undefined {
    return this.#records.get(driver)?.get(uid);
  }

  all(): ClaimRecord[] {
    return this.drivers().flatMap((driver) => this.of(driver));
  }

  of(driver: string): ClaimRecord[] {
    return [...(this.#records.get(driver)?.values() ?? [])];
  }

  /**
   * Completes a record from the claim's allocation: pods added to reservedFor since, and what a CDI file or an
   * older agent did not record.
   */
  async complete(driver: string, uid: string, allocation: Allocation): Promise<void> {
    const record = this.get(driver, uid);
    if (!record) return;
    const { pods: known } = record;
    const added = allocation.pods.filter((pod) => !known.some((each) => each.uid === pod.uid));
    const devices = record.devices.map((device) => ({
      ...(allocation.devices.find((each) => sameDevice(each, device)) ?? device),
      cdiDeviceIds: device.cdiDeviceIds,
    }));
    const areSame = isDeepStrictEqual(devices, record.devices);
    const details = record.details ?? allocation.details;
    if (added.length === 0 && areSame && details === record.details) return;
    await this.#put({ ...record, devices, pods: [...known, ...added], details });
  }

  /** Removes pods whose containers have exited from a record. Pods added meanwhile stay. */
  async removePods(driver: string, uid: string, ended: readonly ClaimPod[]): Promise<void> {
    const record = this.get(driver, uid);
    if (!record) return;
    await this.#put({
      ...record,
      pods: record.pods.filter((pod) => !ended.some((each) => each.uid === pod.uid)),
    });
  }

  /**
   * Records that the driver has lost the preparation of a prepared claim. The state stays `prepared`, because the
   * kubelet does not call again. A preparation of an earlier boot already counts as lost. Its record is not changed,
   * because the boot ID shows that no container uses the devices.
   */
  async lose(driver: string, uid: string): Promise<void> {
    const record = this.get(driver, uid);
    if (record?.state === "prepared" && !this.isLost(record)) await this.#put({ ...record, boot: LOST });
  }

  /**
   * Records that a claim must be prepared again, as `lose` does: its unprepare was not completed, and the kubelet
   * considers it prepared. Does nothing unless the claim is unprepared or being unprepared.
   */
  async reopen(driver: string, uid: string): Promise<void> {
    const record = this.get(driver, uid);
    if (!record || !isEnding(record)) return;
    await this.#put({ ...record, state: "prepared", boot: this.isLost(record) ? record.boot : LOST });
  }

  /** Sets whether a claim's CDI file is withheld because a path in it is no longer allowed. Not persisted. */
  withhold({ driver, uid }: ClaimRecord, isWithheld: boolean): void {
    if (isWithheld) this.#withheld.add(`${driver}/${uid}`);
    else this.#withheld.delete(`${driver}/${uid}`);
  }

  /**
   * Returns whether the claim must have a CDI file: it is prepared in this boot, with edits, and the file is not
   * withheld.
   */
  hasFile(record: ClaimRecord): boolean {
    const { driver, uid, state, cdi } = record;
    if (state !== "prepared" || cdi === "" || this.isLost(record)) return false;
    return !this.#withheld.has(`${driver}/${uid}`);
  }

  /**
   * Returns whether a claim was prepared before the machine's last boot, so that nothing of the preparation is left.
   */
  isOfOldBoot({ boot }: Pick<ClaimRecord, "boot">): boolean {
    return boot !== this.#boot && boot !== LOST;
  }

  /** Returns whether nothing of a claim's preparation is left: as by `isOfOldBoot`, or the driver has lost it. */
  isLost({ boot }: Pick<ClaimRecord, "boot">): boolean {
    return boot !== this.#boot;
  }

  /**
   * Returns whether a claim's preparation must be repeated before the kubelet is answered: it is lost, or the
   * previous agent may have unprepared the claim without recording it.
   */
  isDoubtful(record: ClaimRecord): boolean {
    return this.isLost(record) || this.#unproven.has(`${record.driver}/${record.uid}`);
  }

  /** Returns whether exactly these devices are prepared, and the preparation need not be repeated (`isDoubtful`). */
  isPrepared(record: ClaimRecord | undefined, devices: readonly DeviceIdentity[]): record is ClaimRecord {
    return record?.state === "prepared" && !this.isDoubtful(record) && this.isOf(record, devices);
  }

  /** Returns whether the record has exactly these devices, in any order. */
  isOf(record: ClaimRecord, devices: readonly DeviceIdentity[]): boolean {
    return record.devices.length === devices.length && hasDevices(record.devices, devices);
  }

  /** Records a claim, or replaces its record. */
  async save(
    driver: string,
    { namespace, name, uid }: ClaimReference,
    recorded: RecordedClaim,
  ): Promise<void> {
    const { state, devices, cdi, pods, details, boot = this.#boot } = recorded;
    const updatedAt = this.#clock.now();
    await this.#put({ driver, uid, namespace, name, state, boot, devices, pods, details, cdi, updatedAt });
    this.#withheld.delete(`${driver}/${uid}`);
    this.#unproven.delete(`${driver}/${uid}`);
  }

  /** Records a claim from its CDI file, if its record was lost or is older than the file. */
  async adopt(owner: FileOwner, cdi: string): Promise<void> {
    const { driver, devices, pods, boot } = owner;
    await this.save(driver, owner, { state: "prepared", devices, pods, cdi, boot });
  }

  /** Removes a claim's record. */
  async remove(driver: string, uid: string): Promise<void> {
    await this.#change(driver, uid, undefined, () => this.#store.remove(driver, uid));
    this.#withheld.delete(`${driver}/${uid}`);
    this.#unproven.delete(`${driver}/${uid}`);
  }

  #put(record: ClaimRecord): Promise<void> {
    const { driver, uid, devices, pods, details = null } = record;
    const texts = { ...deviceTexts(devices), pods: JSON.stringify(pods), details: JSON.stringify(details) };
    const stored = { ...record, ...texts };
    return this.#change(driver, uid, record, () => this.#store.save(stored));
  }

  #change(driver: string, uid: string, after: ClaimRecord | undefined, write: () => void): Promise<void> {
    let before: ClaimRecord | undefined;
    const set = (record: ClaimRecord | undefined) => {
      if (record) this.#remember(record);
      else this.#forget(driver, uid);
      for (const listener of this.#listeners) listener(driver, uid);
    };
    return this.#commits.add({
      // Reads the record again: after an earlier change failed and was reverted, it may differ.
      apply: () => {
        before = this.get(driver, uid);
        set(after);
      },
      revert: () => set(before),
      write,
    });
  }

  #remember(record: ClaimRecord): void {
    const records = this.#records.get(record.driver) ?? new Map<string, ClaimRecord>();
    records.set(record.uid, record);
    this.#records.set(record.driver, records);
  }

  #forget(driver: string, uid: string): void {
    const records = this.#records.get(driver);
    records?.delete(uid);
    if (records?.size === 0) this.#records.delete(driver);
  }
}

/** Returns whether the claim is unprepared or being unprepared: it must be prepared before it is used again. */
export function isEnding({ state }: Pick<ClaimRecord, "state">): boolean {
  return state === "unpreparing" || state === "unprepared";
}

/** Returns devices as recorded before they are prepared. */
export function unprepared(devices: readonly AllocatedDevice[]): PreparedDevice[] {
  return devices.map((device) => ({ ...device, cdiDeviceIds: [] }));
}
