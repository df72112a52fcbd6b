import type { Clock } from "@nodekeeper/core/lib";
import type { ClaimStore, StoredClaim } from "../state/index.ts";
import { type DeviceIdentity, sameDevice } from "./allocation.ts";
import type { FileOwner, PreparedDevice } from "./cdi-file.ts";
import type { ClaimReference } from "./claim-reader.ts";

/** What is known of a claim's devices of one driver; as `StoredClaim`, with its devices read. */
export interface ClaimRecord extends Omit<StoredClaim, "devices"> {
  devices: readonly PreparedDevice[];
}

/** The records of claims: those of the state database, kept in memory beside it. */
export class ClaimRecords {
  readonly #store: ClaimStore;
  readonly #boot: string;
  readonly #clock: Clock;
  // Of claims that were read since the agent's start, by driver and UID.
  readonly #pods = new Map<string, readonly string[]>();
  // By driver, then by UID.
  readonly #records = new Map<string, Map<string, ClaimRecord>>();

  /** @param boot the machine's boot, by its ID */
  constructor(store: ClaimStore, boot: string, clock: Clock) {
    this.#store = store;
    this.#boot = boot;
    this.#clock = clock;
    for (const stored of store.claims()) this.#remember({ ...stored, devices: devicesOf(stored.devices) });
  }

  get boot(): string {
    return this.#boot;
  }

  /** Sorted by name. */
  drivers(): string[] {
    return [...this.#records.keys()].sort();
  }

  get(driver: string, uid: string): ClaimRecord | undefined {
    return this.#records.get(driver)?.get(uid);
  }

  of(driver: string): ClaimRecord[] {
    return [...(this.#records.get(driver)?.values() ?? [])];
  }

  /** Remembers the pods that a claim is reserved for, as the API server has it: "<namespace>/<name>". Not kept on disk. */
  reservedFor(driver: string, uid: string, pods: readonly string[]): void {
    this.#pods.set(`${driver}/${uid}`, pods);
  }

  /** What `reservedFor` was given last; undefined where the claim was not read since the agent's start. */
  podsOf(driver: string, uid: string): readonly string[] | undefined {
    return this.#pods.get(`${driver}/${uid}`);
  }

  /** Whether a claim was prepared before the machine was started last, so that nothing of it is left. */
  isOfOldBoot({ boot }: ClaimRecord): boolean {
    return boot !== this.#boot;
  }

  /** Whether the record is of these devices, prepared in this boot. */
  isPrepared(record: ClaimRecord | undefined, devices: readonly DeviceIdentity[]): record is ClaimRecord {
    return record?.state === "prepared" && !this.isOfOldBoot(record) && this.isOf(record, devices);
  }

  /** Whether the record is of these devices and no others, in any order. */
  isOf(record: ClaimRecord, devices: readonly DeviceIdentity[]): boolean {
    return (
      record.devices.length === devices.length &&
      devices.every((device) => record.devices.some((each) => sameDevice(each, device)))
    );
  }

  /** Throws where the disk is full; the record is as before then. */
  save(
    driver: string,
    { namespace, name, uid }: ClaimReference,
    state: ClaimRecord["state"],
    prepared: { devices: readonly PreparedDevice[]; cdi: string },
    boot = this.#boot,
  ): void {
    const { devices, cdi } = prepared;
    const record = { driver, uid, namespace, name, state, boot, devices, cdi, updatedAt: this.#clock.now() };
    this.#store.save({ ...record, devices: JSON.stringify(devices) });
    this.#remember(record);
  }

  /** Records a claim again of which only its file is left. */
  adopt(owner: FileOwner, cdi: string): void {
    this.save(owner.driver, owner, "prepared", { devices: owner.devices, cdi }, owner.boot);
  }

  /** Throws where the disk is full; the record is as before then. */
  remove(driver: string, uid: string): void {
    this.#store.remove(driver, uid);
    this.#pods.delete(`${driver}/${uid}`);
    const records = this.#records.get(driver);
    records?.delete(uid);
    if (records?.size === 0) this.#records.delete(driver);
  }

  #remember(record: ClaimRecord): void {
    const records = this.#records.get(record.driver) ?? new Map<string, ClaimRecord>();
    records.set(record.uid, record);
    this.#records.set(record.driver, records);
  }
}

/** Whether a claim has ended for the kubelet, or is about to: it is never handed out again as it is. */
export function isEnding({ state }: Pick<ClaimRecord, "state">): boolean {
  return state === "unpreparing" || state === "unprepared";
}

/** The identities alone, as a record keeps them before anything is prepared. */
export function unprepared(devices: readonly DeviceIdentity[]): PreparedDevice[] {
  return devices.map(({ request, pool, device, shareId }) => ({
    request,
    pool,
    device,
    shareId,
    cdiDeviceIds: [],
  }));
}

function devicesOf(text: string): PreparedDevice[] {
  return JSON.parse(text) as PreparedDevice[];
}
