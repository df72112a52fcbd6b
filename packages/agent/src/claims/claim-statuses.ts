import { DeviceStatusNotWritten, DeviceStatusRefused } from "@nodekeeper/api/errors";
import type { DeviceStatus } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import {
  type Clock,
  codeOf,
  type Logger,
  messageOf,
  retryPolicies,
  TokenBucket,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { ClaimStatusStore } from "../state/index.ts";
import type { ClaimProblems } from "./claim-problems.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { type ClaimRecord, type ClaimRecords, isEnding } from "./claim-records.ts";
import { type ClaimStatusApi, statusManager } from "./claim-status-api.ts";
import type { StatusEntry } from "./device-status.ts";
import { isAllocated, type RefusedStatus, readStatusReport, type StatusReport } from "./status-report.ts";

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
// Of one driver. A report has the status of all its claims, once a second.
const WRITES = { perSecond: 5, burst: 20 };
const WAIT_MS = 1_000;
// After a refusal that only an operator can change.
const HOLD_MS = 300_000;
const MOST_LOGGED = 10;
const DROPPED =
  "the API server drops status.devices because its feature gate DRAResourceClaimDeviceStatus is off";

/**
 * Writes the status that drivers report of allocated devices to `status.devices` of their ResourceClaims.
 *
 * 1. Only devices of claims that are prepared have a status. It is removed when the claim is unprepared, also by an agent
 *    that was restarted since: claims are recorded before they are written.
 * 2. While a driver is disconnected its last status stays.
 * 3. Only the agent's own fields are removed or changed: each driver has its own field manager on each node, and fields
 *    of other managers are not taken over.
 */
export class ClaimStatuses {
  readonly #options: ClaimStatusesOptions;
  readonly #queue: WorkQueue;
  /** The last report of each driver since the agent's start. */
  readonly #drivers = new Map<string, StatusReport>();
  readonly #buckets = new Map<string, TokenBucket>();
  /** Entries as written, by driver and UID. */
  readonly #written = new Map<string, string>();
  /** Claims that may have entries of ours, by driver and UID. */
  readonly #stored: Map<string, ClaimReference>;
  /** Why the last write of a claim failed, by driver and UID. */
  readonly #failures = new Map<string, string>();
  /** By driver: until when nothing is written, in monotonic milliseconds, and why. */
  readonly #holds = new Map<string, { until: number; problem: string }>();

  constructor(options: ClaimStatusesOptions) {
    this.#options = options;
    const { store, records, clock, log, queueMetrics: metrics } = options;
    const backoff = retryPolicies.claimStatus;
    this.#queue = new WorkQueue({ name: "claim-status", clock, log, backoff, metrics });
    this.#stored = new Map(store.claims().map((claim) => [keyOf(claim.driver, claim.uid), claim]));
    records.subscribe((driver, uid) => {
      this.#reconsider(driver, uid);
      this.#changed(driver, uid);
    });
  }

  /** Takes a driver's report: the status of all its allocated devices. */
  reported(driver: string, devices: readonly DeviceStatus[]): void {
    const before = this.#drivers.get(driver);
    const next = readStatusReport(driver, devices, this.#options);
    this.#setReport(driver, next);
    this.#log(driver, next.refused, before?.refused ?? []);
    if (!before) {
      this.#changedAll(driver);
      return;
    }
    for (const uid of new Set([...before.entries.keys(), ...next.entries.keys()]))
      if (JSON.stringify(before.entries.get(uid)) !== JSON.stringify(next.entries.get(uid)))
        this.#changed(driver, uid);
  }

  /** Removes all entries of a driver that no longer reports the status of its devices. */
  withdrawn(driver: string): void {
    this.#setReport(driver, { entries: new Map(), refused: [] });
    this.#changedAll(driver);
  }

  /** Forgets a driver that is gone and has no claims. Entries that are still to be removed are removed. */
  forgotten(driver: string): void {
    this.#drivers.delete(driver);
    this.#buckets.delete(driver);
    this.#holds.delete(driver);
  }

  /** Why the status of a driver's devices is refused or not written; undefined if it is. */
  problemOf(driver: string): string | undefined {
    const failed = [...this.#failures].find(([key]) => key.startsWith(`${driver}/`));
    return this.#drivers.get(driver)?.refused[0]?.message ?? this.#holds.get(driver)?.problem ?? failed?.[1];
  }

  /** Writes until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    for (const key of this.#stored.keys()) this.#add(key);
    await this.#queue.run(signal, WORKERS, (key) => this.#sync(key, signal));
  }

  #setReport(driver: string, report: StatusReport): void {
    this.#drivers.set(driver, report);
    this.#options.problems.report(driver, "status", report.refused);
  }

  // The status of a device may be reported before its claim is recorded.
  #reconsider(driver: string, uid: string): void {
    const report = this.#drivers.get(driver);
    const record = this.#options.records.get(driver, uid);
    if (!report || !record) return;
    const refused = report.refused.filter(
      ({ claimUid, entry }) => claimUid !== uid || !entry || !isAllocated(record, entry),
    );
    if (refused.length < report.refused.length) this.#setReport(driver, { ...report, refused });
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

  #changedAll(driver: string): void {
    for (const { uid } of this.#options.records.of(driver)) this.#changed(driver, uid);
  }

  // Claims without a record are ignored, so that a driver can't fill the queue.
  #changed(driver: string, uid: string): void {
    const key = keyOf(driver, uid);
    const isReported = this.#drivers.get(driver)?.entries.has(uid) ?? false;
    const isRecorded = this.#options.records.get(driver, uid) !== undefined;
    if (this.#stored.has(key) || (isReported && isRecorded)) this.#add(key);
  }

  // A claim that waits for a retry is not written earlier because its status changes again.
  #add(key: string): void {
    if (!this.#queue.isWaiting(key)) this.#queue.add(key);
  }

  async #sync(key: string, signal: AbortSignal): Promise<void> {
    const [driver = "", uid = ""] = key.split("/");
    const record = this.#options.records.get(driver, uid);
    const claim = record ?? this.#stored.get(key);
    const entries = this.#entriesOf(driver, uid, record);
    if (!claim || !entries) return;
    if (entries.length === 0 && !this.#stored.has(key)) {
      this.#written.delete(key);
      return;
    }
    const text = JSON.stringify(entries);
    if (this.#written.get(key) === text || this.#postponed(driver, key)) return;
    try {
      const isWritten = await this.#write(driver, claim, entries, signal);
      if (!this.#stored.has(key)) this.#written.delete(key);
      else if (isWritten) this.#written.set(key, text);
      this.#failures.delete(key);
    } catch (error) {
      this.#failures.set(key, messageOf(error));
      throw error;
    }
  }

  // Undefined if it is not known yet what the claim's status should be.
  #entriesOf(driver: string, uid: string, record: ClaimRecord | undefined): StatusEntry[] | undefined {
    if (!record || isEnding(record)) return [];
    if (record.state !== "prepared") return undefined;
    const reporting = this.#drivers.get(driver);
    return reporting && (reporting.entries.get(uid) ?? []).filter((entry) => isAllocated(record, entry));
  }

  #postponed(driver: string, key: string): boolean {
    const { clock } = this.#options;
    const waitMs = (this.#holds.get(driver)?.until ?? 0) - clock.monotonic();
    if (waitMs > 0) {
      this.#queue.addAfter(key, waitMs);
      return true;
    }
    const bucket = this.#buckets.get(driver) ?? new TokenBucket(clock, WRITES);
    this.#buckets.set(driver, bucket);
    if (bucket.tryTake()) return false;
    this.#queue.addAfter(key, WAIT_MS);
    return true;
  }

  // Returns false if it is postponed.
  async #write(
    driver: string,
    { namespace, name, uid }: ClaimReference,
    entries: readonly StatusEntry[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { store, log } = this.#options;
    const key = keyOf(driver, uid);
    const claim = { namespace, name, uid };
    if (!this.#stored.has(key)) {
      store.save({ driver, ...claim });
      this.#stored.set(key, claim);
    }
    const result = await this.#apply(driver, claim, entries, signal);
    if (result === "held") {
      this.#queue.addAfter(key, HOLD_MS);
      return false;
    }
    if (result === "applied")
      log.debug({ driver, claim, devices: entries.length }, "status of devices written");
    if (result === "missing" || entries.length === 0) {
      store.remove({ driver, uid });
      this.#stored.delete(key);
    }
    return true;
  }

  async #apply(
    driver: string,
    claim: ClaimReference,
    entries: readonly StatusEntry[],
    signal: AbortSignal,
  ): Promise<"applied" | "missing" | "held"> {
    const { api, nodeName, clock } = this.#options;
    const manager = statusManager(driver, nodeName);
    try {
      if (!(await api.apply(claim, entries, { manager, now: clock.now() }, signal))) {
        this.#hold(driver, DROPPED);
        return "held";
      }
      this.#holds.delete(driver);
      return "applied";
    } catch (error) {
      const code = codeOf(error);
      if (code === "notFound") return "missing";
      if (code !== "forbidden") throw error;
      this.#hold(driver, messageOf(error));
      return "held";
    }
  }

  #hold(driver: string, problem: string): void {
    const { clock, log } = this.#options;
    const isKnown = this.#holds.get(driver)?.problem === problem;
    this.#holds.set(driver, { until: clock.monotonic() + HOLD_MS, problem });
    if (isKnown) return;
    log.warn(
      { errorId: DeviceStatusNotWritten.id, driver },
      `the status of devices is not written to ResourceClaims: ${problem}`,
    );
  }
}

function keyOf(driver: string, uid: string): string {
  return `${driver}/${uid}`;
}
