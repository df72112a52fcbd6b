import { DriverAnswerRefused, DriverFailed } from "@nodekeeper/api/errors";
import { RestoreClaimsResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { decodeMessage } from "@nodekeeper/core/grpc";
import { abortable, codeOf, type Logger, messageOf, quote } from "@nodekeeper/core/lib";
import { restoreMessage } from "./claim-messages.ts";
import type { ClaimRecords } from "./claim-records.ts";

export interface ClaimRestorationOptions {
  driver: string;
  records: Pick<ClaimRecords, "of" | "isLost" | "lose">;
  /** Calls RestoreClaims. Rejects with `unsupported` if the driver does not implement it. */
  call: (request: Uint8Array, about: object) => Promise<Uint8Array>;
  log: Logger;
}

const MOST_UIDS = 50_000;
const answerBounds = { repeated: { 1: {} }, most: MOST_UIDS, what: "UIDs" };
const MOST_NAMED = 5;

/**
 * Tells a driver once for its connection which claims are prepared, and records those whose preparation it has lost. The
 * first call to the driver waits for it. After a failure, calls fail until it is tried again.
 */
export class ClaimRestoration {
  /** Why a part of the driver's answer was refused. */
  problem: string | undefined;
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

  /** The same, but tries again after a failure. */
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
    const { driver, records, call, log } = this.#options;
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
    const uids = [...new Set(decodeMessage(RestoreClaimsResponse, answer, answerBounds).prepareAgain)];
    const claims = new Set(known);
    const unknown = uids.filter((uid) => !claims.has(uid));
    if (unknown.length > 0) {
      const more = unknown.length > MOST_NAMED ? ` and ${unknown.length - MOST_NAMED} more` : "";
      const named = `${unknown.slice(0, MOST_NAMED).map(quote).join(", ")}${more}`;
      this.problem = `driver ${driver}: prepare_again of RestoreClaims has UIDs of claims that it was not sent: ${named}`;
      const error = new DriverAnswerRefused({ problem: this.problem });
      log.warn(
        { driver, errorId: DriverAnswerRefused.id, err: error },
        "a part of the driver's answer was refused",
      );
    }
    return uids.filter((uid) => claims.has(uid));
  }
}
