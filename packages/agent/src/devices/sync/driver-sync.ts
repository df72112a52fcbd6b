import {
  Backoff,
  type Clock,
  codeOf,
  type ErrorCode,
  type ErrorId,
  errorIdOf,
  messageOf,
  RepairPace,
  retryAfterOf,
  retryPolicies,
} from "@nodekeeper/core/lib";
import type { Feature } from "../model/feature-bits.ts";
import type { DroppedField } from "../plan/features.ts";
import { PlanMemory } from "../plan/plan-memory.ts";
import type { Desired } from "./driver.ts";
import { RefusedDevices } from "./refused-devices.ts";
import type { WriteResult } from "./write-result.ts";

// One Event for what changes all the time.
const EVENT_INTERVAL_MS = 60_000;
const MOST_FIELDS_IN_EVENT = 3;

/** Why a driver's slices are not as they should be. */
export interface WriteProblem {
  message: string;
  code: ErrorCode;
  errorId: ErrorId | undefined;
  /** Monotonic milliseconds. */
  since: number;
}

/** @param since monotonic milliseconds */
export function writeProblem(error: unknown, since: number): WriteProblem {
  return { message: messageOf(error), code: codeOf(error), errorId: errorIdOf(error), since };
}

/** The state of writing one driver's slices. Times are monotonic milliseconds. */
export class DriverSync {
  /** Devices that the API server refuses. */
  readonly refused: RefusedDevices;
  readonly plans = new PlanMemory();
  readonly #failures: Backoff;
  readonly #repairs: RepairPace;
  #settledFor: Desired | undefined;
  #reported = "";
  #reportedAt = Number.NEGATIVE_INFINITY;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** Why its slices can't be written; undefined where they are. */
  problem: WriteProblem | undefined;
  /** Slices that the API server refuses, and its words. */
  refusedSlices: ReadonlyMap<string, string> = new Map();
  dropped: readonly DroppedField[] = [];
  /** What the server was asked about features for this driver; `DeviceSync` knows what it means. */
  asked = "";
  #retryAt: number | undefined;
  /** Features that are left out for this driver alone, for the server refuses them in its slices. */
  without: ReadonlySet<Feature> = new Set();

  constructor(clock: Clock, random?: () => number) {
    const more = random ? { random } : {};
    this.refused = new RefusedDevices(random);
    this.#failures = new Backoff({ ...retryPolicies.slices, ...more });
    this.#repairs = new RepairPace(clock, { ...retryPolicies.sliceRepair, ...more });
  }

  /** How long the next round of writes has to wait: for the pause between rounds, or for a server in trouble. */
  rest(now: number, minWriteIntervalMs: number): number {
    return Math.max(this.#writtenAt + minWriteIntervalMs, this.#pausedUntil) - now;
  }

  /** Takes what a round came to. */
  wrote({ writes, failures, dropped }: WriteResult, now: number): void {
    if (writes > 0) {
      this.#writtenAt = now;
      this.dropped = dropped;
    }
    this.refusedSlices = new Map([...failures].map(([name, error]) => [name, messageOf(error)]));
    const [first] = failures.values();
    if (first === undefined) this.problem = undefined;
    else this.#fail(first, now);
  }

  /** All is as it should be. */
  settled(desired: Desired): void {
    this.#failures.reset();
    this.refused.settled();
    this.#settledFor = desired;
  }

  /** How long until refused devices are to be tried again; undefined where there are none. Each time longer. */
  retryDelay(now: number): number | undefined {
    if (this.refused.size === 0) {
      this.#retryAt = undefined;
      return undefined;
    }
    this.#retryAt ??= now + this.refused.retryDelay();
    return Math.max(0, this.#retryAt - now);
  }

  /** From now on refused devices are among those to be written. */
  retry(): void {
    this.#retryAt = undefined;
    this.refused.retry();
  }

  /** Some slices could not be written; answers when to try again. */
  failedPartly(): number {
    return this.#failures.next();
  }

  /** Nothing could be written: the server is left alone for a while, whatever the driver reports. Answers how long. */
  failed(error: unknown, now: number): number {
    this.#fail(error, now);
    const delayMs = this.#failures.next(retryAfterOf(error));
    this.#pausedUntil = now + delayMs;
    return delayMs;
  }

  /** Whether a change is another client's: the driver reports what it reported when all was well. */
  isRepair(desired: Desired | undefined): boolean {
    return this.#settledFor !== undefined && this.#settledFor === desired;
  }

  /** How long to wait before a repair: not at all for the first, ever longer against a client that does it repeatedly. */
  repairDelay(): number {
    return this.#repairs.next();
  }

  /**
   * Events about devices that are not published; none where they were sent already, or others were less than a minute
   * ago. Devices are counted by the field that is wrong, so that devices that come and go make one Event.
   */
  news(driver: string, { problems, quarantined }: Desired, now: number): string[] {
    const messages: string[] = [];
    const all = [...problems, ...this.refused.problems()];
    const count = quarantined + this.refused.size;
    if (all.length > 0) {
      const byField = Map.groupBy(all, ({ field, message }) => (field === "" ? message : field));
      const parts = [...byField].slice(0, MOST_FIELDS_IN_EVENT).map(([field, some]) => {
        const [{ device, pool, message }] = some as [(typeof some)[0]];
        const name = device ? `${device} of pool ${pool}` : `pool ${pool}`;
        const what = field === message ? message : `${field}: ${message}`;
        return some.length === 1 ? `${name}: ${what}` : `${some.length} such as ${name}: ${what}`;
      });
      if (byField.size > MOST_FIELDS_IN_EVENT)
        parts.push(`${byField.size - MOST_FIELDS_IN_EVENT} more reasons`);
      messages.push(`Driver ${driver}: ${count} devices are quarantined: ${parts.join("; ")}`);
    }
    const [refused] = this.refusedSlices;
    if (refused) messages.push(`Driver ${driver}: the API server refuses slice ${refused[0]}: ${refused[1]}`);
    const [dropped] = this.dropped;
    if (dropped) {
      const why = dropped.feature ? ` (${dropped.feature} is off)` : "";
      messages.push(`Driver ${driver}: the API server stores ${dropped.field} differently${why}`);
    }
    const text = messages.join("\n");
    if (text === this.#reported) return [];
    if (messages.length > 0 && now - this.#reportedAt < EVENT_INTERVAL_MS) return [];
    this.#reported = text;
    if (messages.length > 0) this.#reportedAt = now;
    return messages;
  }

  #fail(error: unknown, now: number): void {
    this.problem = writeProblem(error, this.problem?.since ?? now);
  }
}
