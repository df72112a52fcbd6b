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
import { type DeviceEvent, type DeviceFindings, DeviceNews } from "./device-news.ts";
import type { Desired } from "./driver.ts";
import { RefusedDevices } from "./refused-devices.ts";

// The API server deletes all slices of a node within this time.
const SAME_REPAIR_MS = 250;

/** The result of a round of writes of one driver. */
export interface WriteResult {
  writes: number;
  /** Slices that could not be written, by name. */
  failures: Map<string, unknown>;
  /** Fields in the written slices that the server stored differently. */
  dropped: DroppedField[];
  /** Features that the server turned out to lack. */
  missing: Set<Feature>;
  /** Deleted slices of other clients that the agent's slices superseded. */
  outdated: string[];
}

/** Why a driver's slices are not as desired. */
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
  // When the last repair is or was due.
  #repairAt = Number.NEGATIVE_INFINITY;
  #settledFor: Desired | undefined;
  readonly #news = new DeviceNews();
  #writtenAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** Why its slices can't be written; undefined if they can. */
  problem: WriteProblem | undefined;
  /** Slices that the API server refuses, with its message. */
  refusedSlices: ReadonlyMap<string, string> = new Map();
  /**
   * Fields that the API server stored differently in the last round of writes, and that no missing feature explains.
   */
  changed: readonly DroppedField[] = [];
  #question = "";
  readonly #refusedQuestions: Backoff;
  // When a question that the server refused to answer is asked again.
  #askAt = Number.POSITIVE_INFINITY;
  #retryAt: number | undefined;
  #without: ReadonlySet<Feature> = new Set();

  constructor(clock: Clock, random?: () => number) {
    this.refused = new RefusedDevices(random);
    this.#failures = new Backoff({ ...retryPolicies.slices, random });
    this.#refusedQuestions = new Backoff({ ...retryPolicies.quarantinedDevices, random });
    this.#repairs = new RepairPace(clock, { ...retryPolicies.sliceRepair, random });
  }

  /**
   * Returns the delay until the next round of writes, from the minimum interval or the backoff. Not positive if it is
   * due.
   */
  rest(now: number, minWriteIntervalMs: number): number {
    return Math.max(this.#writtenAt + minWriteIntervalMs, this.#pausedUntil) - now;
  }

  /**
   * Returns the delay until a feature query, as `SliceSync` formats it, is sent, milliseconds. Infinite if the server
   * has answered it.
   */
  askDelay(question: string, now: number): number {
    return this.#question === question ? Math.max(0, this.#askAt - now) : 0;
  }

  /**
   * Records the features to omit for this driver, as found by a feature query.
   * @param isRefused whether the server refused to answer; the query is then repeated after an increasing delay
   */
  asked(question: string, without: ReadonlySet<Feature>, isRefused: boolean, now: number): void {
    this.#question = question;
    this.#without = without;
    if (!isRefused) this.#refusedQuestions.reset();
    this.#askAt = isRefused ? now + this.#refusedQuestions.next() : Number.POSITIVE_INFINITY;
  }

  /** Features omitted for this driver only, because the server refuses them in its slices. */
  get without(): ReadonlySet<Feature> {
    return this.#without;
  }

  /** Stores the result of a round of writes. */
  wrote({ writes, failures, dropped }: WriteResult, now: number): void {
    if (writes > 0) {
      this.#writtenAt = now;
      // Fields of a missing feature are learned, and omitted from the desired state.
      this.changed = dropped.filter(({ feature }) => !feature);
    }
    this.refusedSlices = new Map([...failures].map(([name, error]) => [name, messageOf(error)]));
    const [first] = failures.values();
    if (first === undefined) this.problem = undefined;
    else this.#fail(first, now);
  }

  /** Records that the slices are as desired. */
  settled(desired: Desired): void {
    this.#failures.reset();
    this.refused.settled();
    this.#settledFor = desired;
  }

  /** Returns the delay until refused devices are retried, which grows each time. Undefined if no device is refused. */
  retryDelay(now: number): number | undefined {
    if (this.refused.size === 0) {
      this.#retryAt = undefined;
      return undefined;
    }
    this.#retryAt ??= now + this.refused.retryDelay();
    return Math.max(0, this.#retryAt - now);
  }

  /** Includes refused devices in the next write. */
  retry(): void {
    this.#retryAt = undefined;
    this.refused.retry();
  }

  /** Records that some slices could not be written. Returns the delay until the retry in milliseconds. */
  failedPartly(): number {
    return this.#failures.next();
  }

  /** Records that nothing could be written. Backs off regardless of new reports. Returns the delay in milliseconds. */
  failed(error: unknown, now: number): number {
    this.#fail(error, now);
    const delayMs = this.#failures.next(retryAfterOf(error));
    this.#pausedUntil = now + delayMs;
    return delayMs;
  }

  /** Returns whether the last desired state that the slices were brought to is this one. */
  isSettled(desired: Desired): boolean {
    return this.#settledFor === desired;
  }

  /**
   * Returns the delay until a change by another client is repaired, milliseconds. It is 0 the first times, and grows if
   * the client undoes each repair. Changes before a repair or within 250 ms after it, such as the deletion of all
   * slices of the node, belong to that repair (`isNew` is false): they are repaired with it, or once more after the 250
   * ms.
   */
  repair(now: number): { isNew: boolean; delayMs: number } {
    if (now <= this.#repairAt) return { isNew: false, delayMs: this.#repairAt - now };
    const endsAt = this.#repairAt + SAME_REPAIR_MS;
    if (now < endsAt) return { isNew: false, delayMs: endsAt - now };
    const delayMs = this.#repairs.next();
    this.#repairAt = now + delayMs;
    return { isNew: true, delayMs };
  }

  /** Returns what is wrong with the driver's devices, slices and fields now. */
  findings({ problems, quarantined, dropped }: Desired): DeviceFindings {
    return {
      problems: [...problems, ...this.refused.problems()],
      quarantined: quarantined + this.refused.size,
      refusedSlices: this.refusedSlices,
      dropped: [...dropped, ...this.changed],
    };
  }

  /** Returns the Events about the driver's devices that are due. See `DeviceNews`. */
  news(driver: string, findings: DeviceFindings, now: number): DeviceEvent[] {
    return this.#news.due(driver, findings, now);
  }

  #fail(error: unknown, now: number): void {
    this.problem = writeProblem(error, this.problem?.since ?? now);
  }
}
