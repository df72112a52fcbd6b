import { DriverAnswerRefused, HostPathNotTrusted } from "@nodekeeper/api/errors";
import { errorIdOf, messageOf } from "@nodekeeper/core/lib";
import type { DriverProblem } from "../devices/index.ts";
import { type ClaimRecord, type ClaimRecords, isEnding } from "./claim-records.ts";
import { RefusedAnswer } from "./refused-answer.ts";

export interface ClaimProblemsOptions {
  records: Pick<ClaimRecords, "get" | "isLost" | "subscribe">;
  /** Receives all problems of a driver after each change. */
  drivers: { setClaimProblems(driver: string, problems: readonly DriverProblem[]): void };
}

/** A report of a driver, or its answer to RestoreClaims: the next one replaces its problems. */
export type ReportKind = "restoration" | "status" | "health";

interface OfDriver {
  /** Refused answers to PrepareDevices, by UID of the claim. */
  answers: Map<string, DriverProblem>;
  reports: Map<ReportKind, readonly DriverProblem[]>;
}

// Of one driver.
const MOST_ANSWERS = 1_000;

/**
 * The refused parts of drivers' answers and reports about claims. A refused answer to PrepareDevices stays
 * until its claim is prepared or unprepared, a refused report until the next one.
 */
export class ClaimProblems {
  readonly #options: ClaimProblemsOptions;
  readonly #drivers = new Map<string, OfDriver>();

  constructor(options: ClaimProblemsOptions) {
    this.#options = options;
    options.records.subscribe((driver, uid) => this.#recorded(driver, uid));
  }

  /** Records that an answer to PrepareDevices was refused, if that is why the preparation failed. */
  preparationFailed(driver: string, claimUid: string, error: unknown): void {
    const errorId = errorIdOf(error);
    if (errorId !== DriverAnswerRefused.id && errorId !== HostPathNotTrusted.id) return;
    const { pool, device } = (error instanceof RefusedAnswer && error.device) || {};
    const { answers } = this.#of(driver);
    if (!answers.has(claimUid) && answers.size >= MOST_ANSWERS) return;
    answers.set(claimUid, { errorId, message: messageOf(error), pool, device, claimUid });
    this.#changed(driver);
  }

  /** Sets the refused parts of a driver's last report. */
  report(driver: string, kind: ReportKind, problems: readonly DriverProblem[]): void {
    const { reports } = this.#of(driver);
    if (problems.length === 0 && !reports.has(kind)) return;
    reports.set(kind, problems);
    if (problems.length === 0) reports.delete(kind);
    this.#changed(driver);
  }

  /** All problems of a driver. */
  of(driver: string): DriverProblem[] {
    const { answers, reports } = this.#drivers.get(driver) ?? {};
    return [...(answers?.values() ?? []), ...[...(reports?.values() ?? [])].flat()];
  }

  /** Removes all problems of a driver that is disconnected and has no claims. */
  forgotten(driver: string): void {
    if (this.#drivers.delete(driver)) this.#options.drivers.setClaimProblems(driver, []);
  }

  #recorded(driver: string, uid: string): void {
    const answers = this.#drivers.get(driver)?.answers;
    if (!answers?.has(uid) || this.#isToBePrepared(this.#options.records.get(driver, uid))) return;
    answers.delete(uid);
    this.#changed(driver);
  }

  #isToBePrepared(record: ClaimRecord | undefined): boolean {
    if (!record || isEnding(record)) return false;
    return record.state === "preparing" || this.#options.records.isLost(record);
  }

  #of(driver: string): OfDriver {
    const known = this.#drivers.get(driver) ?? { answers: new Map(), reports: new Map() };
    this.#drivers.set(driver, known);
    return known;
  }

  #changed(driver: string): void {
    this.#options.drivers.setClaimProblems(driver, this.of(driver));
  }
}
