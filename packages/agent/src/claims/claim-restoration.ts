import { DriverAnswerRefused, DriverFailed } from "@nodekeeper/api/errors";
import { RestoreClaimsResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { decodeMessage } from "@nodekeeper/core/grpc";
import { abortable, codeOf, type Logger, messageOf, quote } from "@nodekeeper/core/lib";
import type { DriverProblem } from "../devices/index.ts";
import { restoreMessage } from "./claim-messages.ts";
import type { ClaimRecords } from "./claim-records.ts";

export interface ClaimRestorationOptions {
  driver: string;
  records: Pick<ClaimRecords, "of" | "isLost" | "lose">;
  /** Calls RestoreClaims. Rejects with `unsupported` if the driver does not implement it. */
  call: (request: Uint8Array, about: object) => Promise<Uint8Array>;
  /** Called with the refused parts of the driver's answer. */
  onRefused: (problems: readonly DriverProblem[]) => void;
  log: Logger;
}

const MOST_UIDS = 50_000;
const answerBounds = { repeated: { 1: {} }, most: MOST_UIDS, what: "UIDs" };
const MOST_REFUSED = 1_000;
const MOST_LOGGED = 5;

/**
 * Sends a driver its recorded claims once per connection (RestoreClaims), and records those whose preparation
 * it has lost. Other calls to the driver wait until this has succeeded. After a failure, they fail until a
 * retry succeeds. A driver without recorded claims is not called.
 */
export class ClaimRestoration {
  readonly #options: ClaimRestorationOptions;
  #attempt: Promise<void> | undefined;
  #hasFailed = false;

  constructor(options: ClaimRestorationOptions) {
    this.#options = options;
  }

  /** Resolves when the claims are restored. Rejects with the last failure, and with the signal's reason. */
  async done(signal: AbortSignal): Promise<void> {
    this.#attempt ??= this.#restore();
    await abortable(this.#attempt, signal);
  }

  /** Like `done`, but sends the claims again if the last attempt failed. */
  async retry(signal: AbortSignal): Promise<void> {
    if (this.#hasFailed) this.#attempt = undefined;
    this.#hasFailed = false;
    await this.done(signal);
  }

  async #restore(): Promise<void> {
    const { driver, records } = this.#options;
    try {
      const known = records.of(driver);
      const lost = await this.#lost(known.map(({ uid }) => uid));
      await Promise.all(lost.map((uid) => records.lose(driver, uid)));
    } catch (error) {
      this.#hasFailed = true;
      const cause = error instanceof DriverFailed ? (error.cause ?? error) : error;
      const problem = `it has not confirmed its prepared claims: ${messageOf(cause)}`;
      throw new DriverFailed({ driver, problem }, { cause: error, code: codeOf(error) });
    }
  }

  // Returns the UIDs of claims to prepare again.
  async #lost(known: readonly string[]): Promise<string[]> {
    if (known.length === 0) return [];
    const { driver, records, call } = this.#options;
    const request = restoreMessage(
      records.of(driver),
      (record) => record.state === "prepared" && !records.isLost(record),
    );
    let answer: Uint8Array;
    try {
      answer = await call(request, { claims: known.length });
    } catch (error) {
      if (codeOf(error) === "unsupported") return [];
      throw error;
    }
    const uids = this.#uidsOf(answer);
    const claims = new Set(known);
    const unknown = uids.filter((uid) => !claims.has(uid)).slice(0, MOST_REFUSED);
    this.#refuse(
      unknown.map((uid) => ({
        message: `prepare_again of RestoreClaims: the driver was not sent a claim with UID ${quote(uid)}`,
        claimUid: uid,
      })),
    );
    return uids.filter((uid) => claims.has(uid));
  }

  #uidsOf(answer: Uint8Array): string[] {
    try {
      return [...new Set(decodeMessage(RestoreClaimsResponse, answer, answerBounds).prepareAgain)];
    } catch (error) {
      this.#refuse([{ message: `RestoreClaims: ${messageOf(error)}` }]);
      throw error;
    }
  }

  #refuse(problems: readonly Omit<DriverProblem, "errorId">[]): void {
    const { driver, onRefused, log } = this.#options;
    const errorId = DriverAnswerRefused.id;
    for (const { message } of problems.slice(0, MOST_LOGGED)) log.warn({ errorId, driver }, message);
    const more = problems.length - MOST_LOGGED;
    if (more > 0) log.warn({ errorId, driver }, `${more} more UIDs of prepare_again are refused`);
    onRefused(problems.map((problem) => ({ errorId, ...problem })));
  }
}
