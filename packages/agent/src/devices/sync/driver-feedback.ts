import { isDeepStrictEqual } from "node:util";
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
import { bounded, type DriverProblem, deviceProblems, MOST_PROBLEMS } from "./driver-problems.ts";

export interface FeedbackOptions {
  driver: string;
  /** Path of the driver's socket. */
  endpoint: string;
  /** Full name of the service `DriverFeedback` as the driver serves it. */
  service: string;
  log: Logger;
}

/** A problem that exists now. */
export interface PresentProblem extends DriverProblem {
  /** Wall milliseconds. */
  since: number;
}

const CALL_TIMEOUT_MS = 10_000;
const MIN_INTERVAL_MS = 1_000;
// The answer is empty.
const MOST_ANSWER_BYTES = 64 * 1024;

/**
 * The problems of a driver: what is not published of its devices, slices and fields as it reported them, and what is not
 * accepted of its answers and reports about claims. A driver that serves DriverFeedback is told of them.
 *
 * 1. It is sent all problems that exist, at once and whenever they change, at most once a second.
 * 2. A driver that fails or hangs is called again with backoff. Nothing else waits for it.
 */
export class DriverFeedback {
  readonly #clock: Clock;
  readonly #sleep = new WakeableSleep();
  // Undefined until the driver's devices were published once: the list would not be whole.
  #devices: readonly DriverProblem[] | undefined;
  #clusterPools: readonly DriverProblem[] = [];
  #claims: readonly DriverProblem[] = [];
  #present: readonly PresentProblem[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** All problems, those of claims first; at most 1,000. */
  get present(): readonly PresentProblem[] {
    return this.#present;
  }

  /** The problems of claims among `present`. */
  get presentOfClaims(): readonly PresentProblem[] {
    return this.#present.slice(0, this.#claims.length);
  }

  /** Sets what is wrong with the driver's devices now. */
  set(findings: DeviceFindings): void {
    const problems = deviceProblems(findings);
    if (this.#devices && isDeepStrictEqual(problems, this.#devices)) return;
    this.#devices = problems;
    this.#update();
  }

  /** Sets what is wrong with the driver's pools beyond the node. Undefined while another agent publishes them. */
  setClusterPools(findings: DeviceFindings | undefined): void {
    const problems = findings ? deviceProblems(findings) : [];
    if (isDeepStrictEqual(problems, this.#clusterPools)) return;
    this.#clusterPools = problems;
    this.#update();
  }

  /** Sets what is refused now of the driver's answers and reports about claims. */
  setClaims(problems: readonly DriverProblem[]): void {
    const claims = bounded(problems);
    if (isDeepStrictEqual(claims, this.#claims)) return;
    this.#claims = claims;
    this.#update();
  }

  // A problem that stays keeps its time.
  #update(): void {
    const now = this.#clock.now();
    const since = new Map(this.#present.map((problem) => [keyOf(problem), problem.since]));
    this.#present = [...this.#claims, ...(this.#devices ?? []), ...this.#clusterPools]
      .slice(0, MOST_PROBLEMS)
      .map((problem) => ({ ...problem, since: since.get(keyOf(problem)) ?? now }));
    this.#sleep.wake();
  }

  /** Calls a connected driver until the signal aborts, or it turns out not to implement the call. Never rejects. */
  async run({ driver, endpoint, service, log }: FeedbackOptions, signal: AbortSignal): Promise<void> {
    const clock = this.#clock;
    const channel = new UnaryChannel(endpoint, { maxReceiveBytes: MOST_ANSWER_BYTES });
    const backoff = new Backoff(retryPolicies.driverReports);
    let told: readonly PresentProblem[] | undefined;
    try {
      while (!signal.aborted) {
        this.#sleep.clear();
        const problems = this.#present;
        if (!this.#devices || problems === told) {
          await this.#sleep.wait(clock, Number.POSITIVE_INFINITY, signal);
          continue;
        }
        const request = encoded(problems);
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
}

function encoded(present: readonly PresentProblem[]): Uint8Array {
  const problems = present.map((problem) => ({ ...problem, since: BigInt(problem.since) }));
  return ReportProblemsRequest.encode(ReportProblemsRequest.fromPartial({ problems })).finish();
}

function keyOf({ errorId, message, pool = "", device = "", claimUid = "" }: DriverProblem): string {
  return JSON.stringify([errorId, pool, device, claimUid, message]);
}
