import { DeviceStatusRefused } from "@nodekeeper/api/errors";
import type { DeviceStatus } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import type { Logger } from "@nodekeeper/core/lib";
import { type DeviceIdentity, hasDevices } from "./allocation.ts";
import type { ClaimProblems } from "./claim-problems.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { type ClaimRecords, isEnding } from "./claim-records.ts";
import { boundDevices, statusManager } from "./claim-status-api.ts";
import { allocationKey, type ClaimToBind, claimToBind } from "./claim-to-bind.ts";
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

/** A claim's desired entries, or a function of the live claim that returns them; undefined: no change. */
export type WantedEntries =
  | readonly StatusEntry[]
  | ((live: KubeObject) => readonly StatusEntry[] | undefined);

interface Waiting {
  claim: ClaimToBind;
  /** Whether the allocation was reported to the driver. */
  isTold: boolean;
}

const MOST_LOGGED = 10;

/** The statuses that drivers report for their devices, and the entries to write from them. */
export class ReportedStatuses {
  readonly #options: ReportedStatusesOptions;
  /** The last report of each driver since the agent's start. */
  readonly #reports = new Map<string, StatusReport>();
  /** Claims that wait to be bound, by driver and UID. */
  readonly #toBind = new Map<string, ReadonlyMap<string, Waiting>>();
  /** By driver, UIDs of claims for which the last report is about an earlier allocation. */
  readonly #outdated = new Map<string, Set<string>>();
  /** Connected drivers to which the waiting claims have not been reported yet. */
  readonly #untold = new Set<string>();

  constructor(options: ReportedStatusesOptions) {
    this.#options = options;
  }

  /** Stores a report. Returns the UIDs of claims whose status has changed; undefined for all claims. */
  reported(driver: string, devices: readonly DeviceStatus[]): Set<string> | undefined {
    const before = this.#reports.get(driver);
    const { nodeName } = this.#options;
    const next = readStatusReport(driver, devices, {
      nodeName,
      devicesOf: (uid) => this.#devicesOf(driver, uid),
    });
    const outdated = this.#outdated.get(driver) ?? [];
    this.#outdated.delete(driver);
    this.#set(driver, next);
    this.#log(driver, next.refused, before?.refused ?? []);
    if (!before) return undefined;
    const uids = [...before.entries.keys(), ...next.entries.keys()];
    const differs = (uid: string) =>
      JSON.stringify(before.entries.get(uid)) !== JSON.stringify(next.entries.get(uid));
    return new Set([...outdated, ...uids.filter(differs)]);
  }

  /** Takes an empty report. */
  withdrawn(driver: string): void {
    this.#outdated.delete(driver);
    this.#untold.delete(driver);
    this.#set(driver, { entries: new Map(), refused: [] });
  }

  forgotten(driver: string): void {
    this.#reports.delete(driver);
    this.#outdated.delete(driver);
    this.#untold.delete(driver);
  }

  /**
   * Sets the claims that wait to be bound. Returns the UIDs of claims whose status is now accepted, no longer
   * accepted, or accepted for another allocation.
   * @param told keys of the allocations that were reported to the driver, by UID of the claim
   */
  toBind(driver: string, claims: readonly ClaimToBind[], told: ReadonlyMap<string, string>): string[] {
    const before = this.#toBind.get(driver) ?? new Map<string, Waiting>();
    const next = new Map(
      claims.map((claim) => [claim.uid, { claim, isTold: told.get(claim.uid) === allocationKey(claim) }]),
    );
    if (claims.length > 0) this.#toBind.set(driver, next);
    else this.#toBind.delete(driver);
    for (const uid of next.keys()) this.reconsider(driver, uid);
    const toldKey = (waiting: Waiting | undefined) => waiting?.isTold && allocationKey(waiting.claim);
    return [...new Set([...before.keys(), ...next.keys()])].filter(
      (uid) => toldKey(before.get(uid)) !== toldKey(next.get(uid)),
    );
  }

  /**
   * Keeps the status of unprepared claims until `renewed`: a newly connected driver does not know them yet
   * and reports no status for them.
   */
  untold(driver: string): void {
    this.#untold.add(driver);
  }

  /** Keeps the status of claims until the next report: the last was about an earlier allocation, if any. */
  renewed(driver: string, uids: readonly string[]): void {
    this.#untold.delete(driver);
    this.#outdated.set(driver, new Set([...(this.#outdated.get(driver) ?? []), ...uids]));
  }

  /** Accepts what was reported of a claim's devices before the claim was known. */
  reconsider(driver: string, uid: string): void {
    const report = this.#reports.get(driver);
    const known = this.#known(driver, uid);
    if (!report || !known) return;
    const refused = report.refused.filter(
      ({ claimUid, entry }) => claimUid !== uid || !entry || !isAllocated(known, entry),
    );
    if (refused.length < report.refused.length) this.#set(driver, { ...report, refused });
  }

  /** Returns the UIDs of a driver's claims that wait to be bound. */
  waiting(driver: string): string[] {
    return [...(this.#toBind.get(driver)?.keys() ?? [])];
  }

  /** Returns a claim that waits to be bound. */
  claimToBind(driver: string, uid: string): ClaimReference | undefined {
    return this.#toBind.get(driver)?.get(uid)?.claim;
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
    if (this.#outdated.get(driver)?.has(uid)) return undefined;
    const record = this.#options.records.get(driver, uid);
    const waiting = this.#toBind.get(driver)?.get(uid);
    // The last report may be about an earlier allocation, also if the claim is prepared for that.
    if (waiting && !waiting.isTold) return undefined;
    const prepared = record?.state === "prepared" ? record.devices : undefined;
    const isUntold = this.#untold.has(driver);
    // A claim may be prepared for one pod while another waits, or still for an earlier allocation.
    if (waiting && !isUntold && !(prepared && hasDevices(prepared, waiting.claim.devices)))
      return this.#entries(driver, uid, waiting.claim.devices);
    if (prepared) return this.#entries(driver, uid, prepared);
    if (record && !isEnding(record)) return undefined;
    if (record && !record.devices.some(({ bindingConditions }) => bindingConditions)) return [];
    return (live) => {
      const bound = boundDevices(live, driver, statusManager(driver, this.#options.nodeName));
      if (bound.length === 0) return [];
      return isUntold ? undefined : this.#entries(driver, uid, bound);
    };
  }

  /**
   * Returns a predicate that checks whether a claim, as read from the API server, still has the allocation that was
   * reported to the driver. Undefined unless the claim waits to be bound and its allocation was reported.
   */
  isTold(driver: string, uid: string): ((live: KubeObject) => boolean) | undefined {
    const waiting = this.#toBind.get(driver)?.get(uid);
    if (!waiting?.isTold) return undefined;
    const key = allocationKey(waiting.claim);
    return (live) => {
      const claim = claimToBind(live, driver, new Map(), this.#options.nodeName);
      return claim !== undefined && allocationKey(claim) === key;
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

  #known(driver: string, uid: string): readonly DeviceIdentity[] | undefined {
    const record = this.#options.records.get(driver, uid);
    const waiting = this.#toBind.get(driver)?.get(uid);
    if (!record && !waiting) return undefined;
    return [...(record?.devices ?? []), ...(waiting?.claim.devices ?? [])];
  }

  #devicesOf(driver: string, uid: string): readonly DeviceIdentity[] | "any" | undefined {
    return this.#known(driver, uid) ?? (this.#options.isStored(driver, uid) ? "any" : undefined);
  }

  #log(driver: string, refused: readonly RefusedStatus[], before: readonly RefusedStatus[]): void {
    const { log } = this.#options;
    const known = new Set(before.map(({ message }) => message));
    const added = refused.filter(({ message }) => !known.has(message));
    const fields = { errorId: DeviceStatusRefused.id, driver };
    for (const { message } of added.slice(0, MOST_LOGGED)) log.warn(fields, message);
    const more = added.length - MOST_LOGGED;
    if (more > 0) log.warn(fields, `status of ${more} more devices refused`);
  }
}
