import { DeviceStatusRefused } from "@nodekeeper/api/errors";
import type { DeviceStatus } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import type { Logger } from "@nodekeeper/core/lib";
import type { DeviceIdentity } from "./allocation.ts";
import type { ClaimProblems } from "./claim-problems.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { type ClaimRecords, isEnding } from "./claim-records.ts";
import { boundDevices } from "./claim-status-api.ts";
import { allocationKey, type ClaimToBind } from "./claim-to-bind.ts";
import type { StatusEntry } from "./device-status.ts";
import { isAllocated, type RefusedStatus, readStatusReport, type StatusReport } from "./status-report.ts";

/** Dependencies of `ReportedStatuses`. */
export interface ReportedStatusesOptions {
  /** Name of the pool whose name is empty in reports. */
  nodeName: string;
  records: Pick<ClaimRecords, "get">;
  /** Returns whether the claim may have entries of ours. */
  isStored: (driver: string, uid: string) => boolean;
  /** Receives the status that is refused. */
  problems: Pick<ClaimProblems, "report">;
  log: Logger;
}

/** The entries that a claim should have. A function: those of the claim as it is; undefined: they stay as they are. */
export type WantedEntries =
  | readonly StatusEntry[]
  | ((live: KubeObject) => readonly StatusEntry[] | undefined);

const MOST_LOGGED = 10;

/** What drivers report of their devices, and what of it is to be written. */
export class ReportedStatuses {
  readonly #options: ReportedStatusesOptions;
  /** The last report of each driver since the agent's start. */
  readonly #reports = new Map<string, StatusReport>();
  /** Claims that wait to be bound, by driver and UID. */
  readonly #toBind = new Map<string, ReadonlyMap<string, ClaimToBind>>();

  constructor(options: ReportedStatusesOptions) {
    this.#options = options;
  }

  /** Takes a report. Returns the UIDs of the claims whose status differs; undefined: of all. */
  reported(driver: string, devices: readonly DeviceStatus[]): Set<string> | undefined {
    const before = this.#reports.get(driver);
    const { nodeName } = this.#options;
    const next = readStatusReport(driver, devices, {
      nodeName,
      devicesOf: (uid) => this.#devicesOf(driver, uid),
    });
    this.#set(driver, next);
    this.#log(driver, next.refused, before?.refused ?? []);
    if (!before) return undefined;
    const uids = [...before.entries.keys(), ...next.entries.keys()];
    return new Set(
      uids.filter((uid) => JSON.stringify(before.entries.get(uid)) !== JSON.stringify(next.entries.get(uid))),
    );
  }

  /** Takes an empty report. */
  withdrawn(driver: string): void {
    this.#set(driver, { entries: new Map(), refused: [] });
  }

  forgotten(driver: string): void {
    this.#reports.delete(driver);
  }

  /** Sets the claims that wait to be bound. Returns the UIDs of those that have begun to wait, ended, or differ. */
  toBind(driver: string, claims: readonly ClaimToBind[]): string[] {
    const before = this.#toBind.get(driver) ?? new Map<string, ClaimToBind>();
    const next = new Map(claims.map((claim) => [claim.uid, claim]));
    if (claims.length > 0) this.#toBind.set(driver, next);
    else this.#toBind.delete(driver);
    const keyIn = (map: ReadonlyMap<string, ClaimToBind>, uid: string) => {
      const claim = map.get(uid);
      return claim && allocationKey(claim);
    };
    const uids = new Set([...before.keys(), ...next.keys()]);
    const changed = [...uids].filter((uid) => keyIn(before, uid) !== keyIn(next, uid));
    for (const uid of changed) this.reconsider(driver, uid);
    return changed;
  }

  /** Accepts what was reported of a claim's devices before the claim was known. */
  reconsider(driver: string, uid: string): void {
    const report = this.#reports.get(driver);
    const known = this.#known(driver, uid);
    if (!report || !known) return;
    const refused = report.refused.filter(
      ({ claimUid, entry }) => claimUid !== uid || !entry || !isAllocated(known.devices, entry),
    );
    if (refused.length < report.refused.length) this.#set(driver, { ...report, refused });
  }

  /** Returns the UIDs of a driver's claims that wait to be bound. */
  waiting(driver: string): string[] {
    return [...(this.#toBind.get(driver)?.keys() ?? [])];
  }

  /** Returns a claim that waits to be bound. */
  claimToBind(driver: string, uid: string): ClaimReference | undefined {
    return this.#toBind.get(driver)?.get(uid);
  }

  /** Returns whether the driver reports a status for a claim that is known. */
  hasStatus(driver: string, uid: string): boolean {
    return Boolean(this.#reports.get(driver)?.entries.has(uid) && this.#known(driver, uid));
  }

  /** Returns the first reason why a status is refused. */
  refusal(driver: string): string | undefined {
    return this.#reports.get(driver)?.refused[0]?.message;
  }

  /** Returns the entries that a claim should have. Undefined if it is not known yet. */
  wanted(driver: string, uid: string): WantedEntries | undefined {
    const record = this.#options.records.get(driver, uid);
    const { devices } = record?.state === "prepared" ? record : (this.#toBind.get(driver)?.get(uid) ?? {});
    if (devices) return this.#entries(driver, uid, devices);
    if (record && !isEnding(record)) return undefined;
    if (record && !record.devices.some(({ bindingConditions }) => bindingConditions)) return [];
    return (live) => {
      const bound = boundDevices(live, driver);
      return bound.length === 0 ? [] : this.#entries(driver, uid, bound);
    };
  }

  #entries(driver: string, uid: string, devices: readonly DeviceIdentity[]): StatusEntry[] | undefined {
    const report = this.#reports.get(driver);
    return report && (report.entries.get(uid) ?? []).filter((entry) => isAllocated(devices, entry));
  }

  #set(driver: string, report: StatusReport): void {
    this.#reports.set(driver, report);
    this.#options.problems.report(driver, "status", report.refused);
  }

  #known(driver: string, uid: string): { devices: readonly DeviceIdentity[] } | undefined {
    return this.#options.records.get(driver, uid) ?? this.#toBind.get(driver)?.get(uid);
  }

  #devicesOf(driver: string, uid: string): readonly DeviceIdentity[] | "any" | undefined {
    return this.#known(driver, uid)?.devices ?? (this.#options.isStored(driver, uid) ? "any" : undefined);
  }

  #log(driver: string, refused: readonly RefusedStatus[], before: readonly RefusedStatus[]): void {
    const { log } = this.#options;
    const known = new Set(before.map(({ message }) => message));
    const added = refused.filter(({ message }) => !known.has(message));
    const fields = { errorId: DeviceStatusRefused.id, driver };
    for (const { message } of added.slice(0, MOST_LOGGED)) log.warn(fields, message);
    const more = added.length - MOST_LOGGED;
    if (more > 0) log.warn(fields, `status refused of ${more} more devices`);
  }
}
