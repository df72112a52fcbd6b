import { isDeepStrictEqual } from "node:util";
import { ReportProblemsRequest } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { Clock } from "@nodekeeper/core/lib";
import type { DeviceFindings } from "./device-news.ts";
import { DriverNotice, type NoticeTarget } from "./driver-notice.ts";
import { bounded, type DriverProblem, deviceProblems, MOST_PROBLEMS } from "./driver-problems.ts";

/** A problem that exists now. */
export interface PresentProblem extends DriverProblem {
  /** Wall milliseconds. */
  since: number;
}

/**
 * The problems of a driver: devices, slices and fields that are not published as reported, and the refused
 * parts of its answers and reports about claims. All are reported to drivers that serve DriverFeedback.
 */
export class DriverFeedback {
  readonly #clock: Clock;
  readonly #notice: DriverNotice<readonly PresentProblem[]>;
  // Undefined until the driver's devices were published once: before that, the list is incomplete.
  #devices: readonly DriverProblem[] | undefined;
  #clusterPools: readonly DriverProblem[] = [];
  #claims: readonly DriverProblem[] = [];
  #present: readonly PresentProblem[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#notice = new DriverNotice({ method: "ReportProblems", about: "problems", encode: encoded, clock });
  }

  /** All problems, those of claims first; at most 1,000. */
  get present(): readonly PresentProblem[] {
    return this.#present;
  }

  /** The problems of claims among `present`. */
  get presentOfClaims(): readonly PresentProblem[] {
    return this.#present.slice(0, this.#claims.length);
  }

  /** Sets the current problems of the node's pools: devices, slices and fields that are not published as reported. */
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

  /** Sets the currently refused parts of the driver's answers and reports about claims. */
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
    if (this.#devices) this.#notice.set(this.#present);
  }

  /** See `DriverNotice.run`. */
  async run(target: NoticeTarget, signal: AbortSignal): Promise<void> {
    await this.#notice.run(target, signal);
  }
}

function encoded(present: readonly PresentProblem[]): Uint8Array {
  const problems = present.map((problem) => ({ ...problem, since: BigInt(problem.since) }));
  return ReportProblemsRequest.encode(ReportProblemsRequest.fromPartial({ problems })).finish();
}

function keyOf({ errorId, message, pool = "", device = "", claimUid = "" }: DriverProblem): string {
  return JSON.stringify([errorId, pool, device, claimUid, message]);
}
