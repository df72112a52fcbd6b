import { isDeepStrictEqual } from "node:util";
import {
  type Clock,
  childScope,
  type Logger,
  messageOf,
  type ScopedSignal,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import { DriverNotice, type NoticeTarget } from "../devices/index.ts";
import { allocationsMessage } from "./claim-messages.ts";
import type { ClaimStatuses } from "./claim-statuses.ts";
import { allocationKey, type ClaimToBind } from "./claim-to-bind.ts";
import { ClaimsToBind, type ClaimsToBindOptions } from "./claims-to-bind.ts";

export interface AllocationReportsOptions
  extends Pick<ClaimsToBindOptions, "nodeName" | "records" | "watch"> {
  statuses: Pick<ClaimStatuses, "toBind" | "untold" | "renewed" | "unprepared">;
  clock: Clock;
  log: Logger;
}

/** State of reporting allocations to one driver that serves DeviceBinding. */
interface Told {
  notice: DriverNotice<readonly ClaimToBind[]>;
  /** Undefined until all are known. */
  claims: readonly ClaimToBind[] | undefined;
  /** Keys of the allocations in the last report that the driver answered, by UID of the claim. */
  allocations: ReadonlyMap<string, string>;
  /** Whether allocations were reported over the current connection: the driver may have restarted. */
  isTold: boolean;
  /** Called after each report, with whether it contains an allocation that is new for this connection. */
  onTold: (isNew: boolean) => void;
}

/**
 * Reports allocated claims to drivers that must know them before they are prepared (ReportAllocations).
 *
 * 1. Pods and claims are watched only while a driver is known that serves DeviceBinding.
 * 2. The first report has all claims. After that, a claim that can't be read does not delay the others.
 * 3. A device's status is accepted once its allocation was reported over the current connection. Earlier
 *    status is about an earlier allocation or an unknown claim, so the driver is asked for it again.
 */
export class AllocationReports {
  readonly #options: AllocationReportsOptions;
  readonly #drivers = new Map<string, Told>();
  readonly #toBind: ClaimsToBind;
  readonly #sleep = new WakeableSleep();
  #watching: ScopedSignal | undefined;

  constructor(options: AllocationReportsOptions) {
    this.#options = options;
    this.#toBind = new ClaimsToBind({
      ...options,
      unprepared: () => options.statuses.unprepared(),
      isServed: (driver) => this.#drivers.has(driver),
    });
    this.#toBind.subscribe(() => this.#changed());
  }

  /**
   * Reports allocations to a connected driver until the signal aborts. Never rejects.
   * @param onTold called after each report, with whether it has an allocation new to this connection
   */
  async tell(
    target: Omit<NoticeTarget, "log">,
    onTold: (isNew: boolean) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { driver } = target;
    const known = this.#drivers.get(driver) ?? this.#added(driver);
    known.onTold = onTold;
    known.isTold = false;
    this.#options.statuses.untold(driver);
    await known.notice.run({ ...target, log: this.#options.log }, signal);
  }

  /**
   * Drops the allocations of a driver that is no longer tracked or no longer serves DeviceBinding. Stops watching pods
   * and claims if no driver is left.
   */
  forgotten(driver: string): void {
    if (!this.#drivers.delete(driver)) return;
    this.#options.statuses.toBind(driver, [], new Map());
    this.#options.statuses.renewed(driver, []);
    if (this.#drivers.size === 0) this.#watching?.abort();
    else this.#toBind.servedChanged();
  }

  /** Why allocations can't be reported to a driver. Undefined if there is no problem or no such driver. */
  problemOf(driver: string): string | undefined {
    const known = this.#drivers.get(driver);
    if (!known) return undefined;
    const { lastError } = this.#toBind;
    const problem = lastError === undefined ? known.notice.problem : messageOf(lastError);
    return problem && `allocations can't be reported to it: ${problem}`;
  }

  /** Watches until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#sleep.clear();
      if (this.#drivers.size === 0) {
        await this.#sleep.waitOrAbort(this.#options.clock, Number.POSITIVE_INFINITY, signal);
        continue;
      }
      using scope = childScope(signal);
      this.#watching = scope;
      await this.#toBind.run(scope.signal);
    }
  }

  #added(driver: string): Told {
    const { clock } = this.#options;
    const known: Told = {
      notice: new DriverNotice({
        method: "ReportAllocations",
        about: "allocations",
        encode: allocationsMessage,
        onTold: (claims) => this.#told(driver, known, claims),
        clock,
      }),
      claims: undefined,
      allocations: new Map(),
      isTold: false,
      onTold: () => {},
    };
    this.#drivers.set(driver, known);
    this.#toBind.servedChanged();
    this.#update(driver, known);
    this.#sleep.wake();
    return known;
  }

  #changed(): void {
    for (const [driver, known] of this.#drivers) this.#update(driver, known);
  }

  #update(driver: string, known: Told): void {
    if (!known.claims && !this.#toBind.isComplete) return;
    const claims = this.#toBind.of(driver);
    if (isDeepStrictEqual(claims, known.claims)) return;
    known.claims = claims;
    this.#send(known);
    this.#accept(driver, known);
  }

  // A claim allocated again is omitted from one report, as if its deallocation had been reported in time.
  #send({ notice, claims = [], allocations }: Told): void {
    const isAnew = (claim: ClaimToBind) =>
      (allocations.get(claim.uid) ?? allocationKey(claim)) !== allocationKey(claim);
    notice.set(claims.some(isAnew) ? claims.filter((claim) => !isAnew(claim)) : claims);
  }

  #told(driver: string, known: Told, claims: readonly ClaimToBind[]): void {
    const added = claims.map(({ uid }) => uid).filter((uid) => !known.isTold || !known.allocations.has(uid));
    known.isTold = true;
    known.allocations = new Map(claims.map((claim) => [claim.uid, allocationKey(claim)]));
    this.#options.statuses.renewed(driver, added);
    this.#accept(driver, known);
    this.#send(known);
    known.onTold(added.length > 0);
  }

  #accept(driver: string, { claims = [], allocations }: Told): void {
    this.#options.statuses.toBind(driver, claims, allocations);
  }
}
