import { DeviceStatusNotWritten } from "@nodekeeper/api/errors";
import type { DeviceStatus } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import {
  type Clock,
  codeOf,
  type Logger,
  messageOf,
  retryPolicies,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { ClaimStatusStore } from "../state/index.ts";
import type { ClaimProblems } from "./claim-problems.ts";
import type { ClaimReference } from "./claim-reader.ts";
import type { ClaimRecords } from "./claim-records.ts";
import { type ClaimStatusApi, statusManager } from "./claim-status-api.ts";
import type { ClaimToBind } from "./claim-to-bind.ts";
import { ReportedStatuses, type WantedEntries } from "./reported-statuses.ts";
import { StatusPace } from "./status-pace.ts";

export interface ClaimStatusesOptions {
  nodeName: string;
  records: ClaimRecords;
  store: ClaimStatusStore;
  api: Pick<ClaimStatusApi, "apply">;
  /** Receives the status that is refused. */
  problems: Pick<ClaimProblems, "report">;
  queueMetrics?: WorkQueueMetrics | undefined;
  clock: Clock;
  log: Logger;
}

const WORKERS = 4;
// How often a claim that neither waits nor is prepared is read.
const RECHECK_MS = 60_000;
const DROPPED =
  "the API server drops status.devices because its feature gate DRAResourceClaimDeviceStatus is off";

/**
 * Writes the status that drivers report of allocated devices to `status.devices` of their ResourceClaims.
 *
 * 1. Only devices of claims that are prepared or wait to be bound have a status. It is removed when the claim
 *    is unprepared, even by an agent started later: claims are recorded before their status is written.
 * 2. The status of a device with binding conditions stays until the claim is deallocated, because the
 *    scheduler reads it for every pod. While the claim neither waits nor is prepared, the agent updates or
 *    removes its own entry but adds none: the last report may be about an earlier allocation. While the claim
 *    waits, it is written only if its allocation is the one that was reported to the driver.
 * 3. While a driver is disconnected, its last status stays.
 * 4. Only the agent's own fields are removed or changed: each driver has its own field manager on each node, and fields
 *    of other managers are not taken over.
 */
export class ClaimStatuses {
  readonly #options: ClaimStatusesOptions;
  readonly #queue: WorkQueue;
  readonly #reports: ReportedStatuses;
  readonly #pace: StatusPace;
  /** Entries as written, by driver and UID. */
  readonly #written = new Map<string, string>();
  /** Claims that may have entries of ours, by driver and UID. */
  readonly #stored: Map<string, ClaimReference>;
  /** Claims that are read again, by driver and UID. */
  readonly #rechecks = new Set<string>();
  /** Why the last write of a claim failed, by driver and UID. */
  readonly #failures = new Map<string, string>();

  constructor(options: ClaimStatusesOptions) {
    this.#options = options;
    const { store, records, clock, log, queueMetrics: metrics } = options;
    const backoff = retryPolicies.claimStatus;
    this.#queue = new WorkQueue({ name: "claim-status", clock, log, backoff, metrics });
    this.#stored = new Map(store.claims().map((claim) => [keyOf(claim.driver, claim.uid), claim]));
    const isStored = (driver: string, uid: string) => this.#stored.has(keyOf(driver, uid));
    this.#reports = new ReportedStatuses({ ...options, isStored });
    this.#pace = new StatusPace({ clock, log });
    records.subscribe((driver, uid) => {
      this.#reports.reconsider(driver, uid);
      this.#changed(driver, uid);
    });
  }

  /** Takes a driver's report: the status of all its allocated devices. */
  reported(driver: string, devices: readonly DeviceStatus[]): void {
    for (const uid of this.#reports.reported(driver, devices) ?? this.#all(driver))
      this.#changed(driver, uid);
  }

  /** Removes all entries of a driver that no longer reports the status of its devices. */
  withdrawn(driver: string): void {
    this.#reports.withdrawn(driver);
    for (const uid of this.#all(driver)) this.#changed(driver, uid);
  }

  /** Drops the last report of a driver that is disconnected and has no claims. Outdated entries are still removed. */
  forgotten(driver: string): void {
    this.#reports.forgotten(driver);
    this.#pace.forget(driver);
  }

  /**
   * Sets the claims that wait to be bound.
   * @param told keys of the allocations that were reported to the driver, by UID of the claim
   */
  toBind(driver: string, claims: readonly ClaimToBind[], told: ReadonlyMap<string, string>): void {
    for (const uid of this.#reports.toBind(driver, claims, told)) {
      // A deallocation has removed what was written.
      this.#written.delete(keyOf(driver, uid));
      this.#changed(driver, uid);
    }
  }

  /** Keeps the status of unprepared claims until they are reported to the newly connected driver. */
  untold(driver: string): void {
    this.#reports.untold(driver);
  }

  /** Keeps the status of claims, whose new allocations were just reported, until the driver's next report. */
  renewed(driver: string, uids: readonly string[]): void {
    this.#reports.renewed(driver, uids);
  }

  /** Returns the claims that may have status entries written by this agent and are not prepared yet. */
  unprepared(): ClaimReference[] {
    const { records } = this.#options;
    const isUnprepared = (key: string) =>
      (records.get(...partsOf(key))?.state ?? "preparing") === "preparing";
    return [...this.#stored].flatMap(([key, claim]) => (isUnprepared(key) ? [claim] : []));
  }

  /** Why the status of a driver's devices is refused or not written. Undefined if neither is the case. */
  problemOf(driver: string): string | undefined {
    const failed = [...this.#failures].find(([key]) => key.startsWith(`${driver}/`));
    return this.#reports.refusal(driver) ?? failed?.[1];
  }

  /** Writes until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    for (const key of this.#stored.keys()) this.#add(key);
    await this.#queue.run(signal, WORKERS, (key) => this.#sync(key, signal));
  }

  #all(driver: string): Set<string> {
    const recorded = this.#options.records.of(driver).map(({ uid }) => uid);
    const stored = [...this.#stored.keys()].map(partsOf).filter(([of]) => of === driver);
    return new Set([...recorded, ...this.#reports.waiting(driver), ...stored.map(([, uid]) => uid)]);
  }

  // Unknown claims are ignored, so that a driver can't fill the queue.
  #changed(driver: string, uid: string): void {
    const key = keyOf(driver, uid);
    if (this.#stored.has(key) || this.#reports.hasStatus(driver, uid)) this.#add(key);
  }

  // A further change of its status does not bring forward the retry of a claim.
  #add(key: string): void {
    if (this.#rechecks.delete(key)) this.#queue.cancel(key);
    if (!this.#queue.isWaiting(key)) this.#queue.add(key);
  }

  async #sync(key: string, signal: AbortSignal): Promise<void> {
    this.#rechecks.delete(key);
    const [driver, uid] = partsOf(key);
    const known = this.#options.records.get(driver, uid) ?? this.#reports.claimToBind(driver, uid);
    const claim = known ?? this.#stored.get(key);
    const wanted = this.#reports.wanted(driver, uid);
    if (!claim || !wanted) return;
    const isOpen = typeof wanted === "function";
    if (!this.#stored.has(key) && (isOpen || wanted.length === 0)) {
      this.#written.delete(key);
      return;
    }
    const text = isOpen ? undefined : JSON.stringify(wanted);
    const isTold = this.#reports.isTold(driver, uid);
    if (!isOpen && this.#written.get(key) === text) return;
    const waitMs = this.#pace.take(driver);
    if (waitMs > 0) {
      this.#queue.addAfter(key, waitMs);
      return;
    }
    this.#written.delete(key);
    try {
      const entries = isOpen || !isTold ? wanted : (live: KubeObject) => (isTold(live) ? wanted : undefined);
      const outcome = await this.#write(driver, claim, entries, signal);
      if (outcome === "held") return;
      if (outcome === "stored" && text !== undefined) this.#written.set(key, text);
      if (outcome !== "none" && isOpen) this.#recheck(key);
      this.#failures.delete(key);
    } catch (error) {
      this.#failures.set(key, messageOf(error));
      throw error;
    }
  }

  #recheck(key: string): void {
    this.#rechecks.add(key);
    this.#queue.addAfter(key, RECHECK_MS);
  }

  // Returns "stored": the claim has entries of the agent. "none": it has none. "kept": nothing was written. "held": the
  // write is retried later.
  async #write(
    driver: string,
    { namespace, name, uid }: ClaimReference,
    wanted: WantedEntries,
    signal: AbortSignal,
  ): Promise<"stored" | "kept" | "none" | "held"> {
    const { store, log } = this.#options;
    const key = keyOf(driver, uid);
    const claim = { namespace, name, uid };
    if (!this.#stored.has(key)) {
      store.save({ driver, ...claim });
      this.#stored.set(key, claim);
    }
    const result = await this.#apply(driver, claim, wanted, signal);
    if (result === "held" || result === "kept") return result;
    if (result !== "missing") log.debug({ driver, claim, result }, "status of devices written");
    if (result === "stored") return "stored";
    store.remove({ driver, uid });
    this.#stored.delete(key);
    return "none";
  }

  async #apply(
    driver: string,
    claim: ClaimReference,
    wanted: WantedEntries,
    signal: AbortSignal,
  ): Promise<"stored" | "removed" | "kept" | "missing" | "held"> {
    const { api, nodeName, clock } = this.#options;
    const manager = statusManager(driver, nodeName);
    const hold = (problem: string, isOfClaim = false) => {
      const pace = this.#pace;
      const key = keyOf(driver, claim.uid);
      const ms = isOfClaim ? pace.holdClaim(driver, claim.uid, problem) : pace.hold(driver, problem);
      this.#failures.set(key, problem);
      this.#queue.addAfter(key, ms);
      return "held" as const;
    };
    try {
      const outcome = await api.apply(claim, wanted, { manager, now: clock.now() }, signal);
      if (outcome === "dropped") return hold(DROPPED);
      if (outcome !== "kept") this.#pace.release(driver);
      return outcome;
    } catch (error) {
      const code = codeOf(error);
      if (code === "notFound") return "missing";
      const isOfClaim = error instanceof DeviceStatusNotWritten && code === "invalid";
      if (code !== "forbidden" && !isOfClaim) throw error;
      return hold(messageOf(error), isOfClaim);
    }
  }
}

function keyOf(driver: string, uid: string): string {
  return `${driver}/${uid}`;
}

function partsOf(key: string): [driver: string, uid: string] {
  const [driver = "", uid = ""] = key.split("/");
  return [driver, uid];
}
