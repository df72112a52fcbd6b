import { isDeepStrictEqual } from "node:util";
import {
  DevicesQuarantined,
  type ErrorId,
  SliceFieldsDropped,
  SlicesNotWritten,
} from "@nodekeeper/api/errors";
import { droppedText } from "@nodekeeper/api/wording";
import { ReportProblemsRequest } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import {
  Backoff,
  type Clock,
  codeOf,
  type Logger,
  retryPolicies,
  sleepOrAbort,
  WakeableSleep,
  withDeadline,
} from "@nodekeeper/core/lib";
import type { DeviceFindings } from "./device-news.ts";

export interface FeedbackOptions {
  driver: string;
  /** Path of the driver's socket. */
  endpoint: string;
  /** Full name of the service `DriverFeedback` as the driver serves it. */
  service: string;
  log: Logger;
}

interface Problem {
  errorId: ErrorId;
  message: string;
  pool?: string | undefined;
  device?: string | undefined;
}

const MOST_PROBLEMS = 1_000;
const LONGEST_MESSAGE = 1_024;
const CALL_TIMEOUT_MS = 10_000;
const MIN_INTERVAL_MS = 1_000;
// The answer is empty.
const MOST_ANSWER_BYTES = 64 * 1024;

/**
 * Tells a driver which of its devices, slices and fields are not published as it reported them.
 *
 * 1. It sends all problems that exist, at once and whenever they change, at most once a second.
 * 2. A driver that fails or hangs is called again with backoff. Nothing else waits for it.
 */
export class DriverFeedback {
  readonly #clock: Clock;
  readonly #sleep = new WakeableSleep();
  // Undefined until the driver's devices were published once.
  #problems: readonly Problem[] | undefined;
  // Wall milliseconds, by problem.
  #since = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sets what is wrong with the driver's devices now. */
  set(findings: DeviceFindings): void {
    const problems = problemsOf(findings);
    if (this.#problems && isDeepStrictEqual(problems, this.#problems)) return;
    const now = this.#clock.now();
    this.#since = new Map(problems.map(keyOf).map((key) => [key, this.#since.get(key) ?? now]));
    this.#problems = problems;
    this.#sleep.wake();
  }

  /** Calls a connected driver until the signal aborts, or it turns out not to implement the call. Never rejects. */
  async run({ driver, endpoint, service, log }: FeedbackOptions, signal: AbortSignal): Promise<void> {
    const clock = this.#clock;
    const channel = new UnaryChannel(endpoint, { maxReceiveBytes: MOST_ANSWER_BYTES });
    const backoff = new Backoff(retryPolicies.driverReports);
    let told: readonly Problem[] | undefined;
    try {
      while (!signal.aborted) {
        this.#sleep.clear();
        const problems = this.#problems;
        if (!problems || problems === told) {
          await this.#sleep.wait(clock, Number.POSITIVE_INFINITY, signal);
          continue;
        }
        const request = this.#encode(problems);
        try {
          await withDeadline(clock, { ms: CALL_TIMEOUT_MS, name: "ReportProblems" }, signal, (scope) =>
            channel.call(`${service}/ReportProblems`, [request], scope),
          );
          told = problems;
          backoff.reset();
          await sleepOrAbort(clock, MIN_INTERVAL_MS, signal);
        } catch (error) {
          if (signal.aborted || codeOf(error) === "unsupported") return;
          const retryInMs = Math.round(backoff.next());
          log.info({ driver, err: error, retryInMs }, "failed to report problems to a driver, retrying");
          await sleepOrAbort(clock, retryInMs, signal);
        }
      }
    } catch {
      // The signal has aborted.
    } finally {
      channel.close();
    }
  }

  #encode(problems: readonly Problem[]): Uint8Array {
    const sent = problems.map((problem) => ({
      ...problem,
      since: BigInt(this.#since.get(keyOf(problem)) ?? 0),
    }));
    return ReportProblemsRequest.encode(ReportProblemsRequest.fromPartial({ problems: sent })).finish();
  }
}

function problemsOf({ problems, refusedSlices, dropped }: DeviceFindings): Problem[] {
  const found: Problem[] = [
    ...problems.slice(0, MOST_PROBLEMS).map(({ pool, device, field, message }) => ({
      errorId: DevicesQuarantined.id,
      message: field === "" ? message : `${field}: ${message}`,
      pool,
      device,
    })),
    ...[...refusedSlices].map(([slice, message]) => ({
      errorId: SlicesNotWritten.id,
      message: `ResourceSlice ${slice} is not written: ${message}`,
    })),
    ...dropped.slice(0, MOST_PROBLEMS).map((field) => ({
      errorId: SliceFieldsDropped.id,
      message: `not stored by the API server: ${droppedText(field)}`,
      pool: field.pool,
      device: field.device,
    })),
  ];
  return found.slice(0, MOST_PROBLEMS).map((problem) => ({
    ...problem,
    // Half of a surrogate pair can't be encoded.
    message: problem.message.slice(0, LONGEST_MESSAGE).toWellFormed(),
  }));
}

function keyOf({ errorId, message, pool = "", device = "" }: Problem): string {
  return JSON.stringify([errorId, pool, device, message]);
}
