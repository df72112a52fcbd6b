import type { ErrorId } from "@nodekeeper/core/lib";
import type { CallInFlight } from "../runtime/index.ts";
import type { LifecycleContext } from "./context.ts";
import type { PodRecords } from "./records.ts";

/** Progress of relists. Times are monotonic milliseconds. */
interface RelistStatus {
  /** Whether all pods have been read since the start. */
  isListed: boolean;
  inFlight: { phase: "list" | "inspect"; since: number; startedAt: number; pods: number } | undefined;
  /** Start of the last relist whose list succeeded; undefined before the first. */
  lastSuccessAt: number | undefined;
  /** Start of the successful relist before that; -Infinity if there is none. */
  previousSuccessAt: number;
  lastError: { message: string; id: ErrorId | undefined; at: number } | undefined;
}

/** A slow reading or call in progress. */
export interface SlowReading {
  /** What is being read: "status of pod default/web". */
  what: string;
  /** Monotonic milliseconds. */
  startedAt: number;
}

/** State of the lifecycle module, for health checks. Times are monotonic milliseconds. */
export interface LifecycleState {
  relist: Readonly<RelistStatus>;
  /** Undefined before the start. */
  startedAt: number | undefined;
  now: number;
  unhealthyAfter: number;
  /** Number of pods whose last inspection failed. */
  stalePods: number;
  /** Slow readings of single pods in progress, the longest first. */
  slowReadings: readonly SlowReading[];
  /** Calls to the runtime that have not returned yet. */
  callsInFlight: readonly CallInFlight[];
}

/** Progress of the module's work, for health checks, errors and metrics. */
export class Progress {
  /** Written by `Relist`. */
  readonly relist: RelistStatus = {
    isListed: false,
    inFlight: undefined,
    lastSuccessAt: undefined,
    previousSuccessAt: Number.NEGATIVE_INFINITY,
    lastError: undefined,
  };
  /** Slow readings by UID. Written by `PodTracker`. */
  readonly slow = new Map<string, SlowReading>();
  readonly #context: Pick<LifecycleContext, "runtime" | "clock" | "settings">;
  readonly #records: PodRecords;
  #startedAt: number | undefined;

  constructor(context: Pick<LifecycleContext, "runtime" | "clock" | "settings">, records: PodRecords) {
    this.#context = context;
    this.#records = records;
  }

  /** Called when the module starts. */
  start(): void {
    this.#startedAt = this.#context.clock.monotonic();
  }

  state(): LifecycleState {
    const { runtime, clock, settings } = this.#context;
    return {
      relist: this.relist,
      startedAt: this.#startedAt,
      now: clock.monotonic(),
      unhealthyAfter: settings.unhealthyAfter,
      stalePods: this.#records.failed,
      slowReadings: [...this.slow.values()].sort((one, other) => one.startedAt - other.startedAt),
      callsInFlight: runtime.callsInFlight(),
    };
  }
}
