import type { BackoffOptions } from "./backoff.ts";
import { type ErrorCode, NodekeeperError } from "./errors.ts";

/** Delays between tries: from `baseMs`, doubling up to `maxMs`, spread by `jitter`, by default 0.2, or as of a fleet. */
export type RetryPolicy = Readonly<
  Pick<BackoffOptions, "baseMs" | "maxMs" | "jitter" | "isOfFleet" | "isFirstImmediate">
>;

/** How long what failed waits before it is tried again: the one list, by what is tried. Milliseconds. */
export const retryPolicies = {
  /** A list or watch of the API server. All agents lose theirs at one moment: docs/fleet.md. */
  apiWatch: { baseMs: 5_000, maxMs: 30_000, isOfFleet: true },
  /** Finding out which ResourceSlices the API server has. */
  sliceDiscovery: { baseMs: 5_000, maxMs: 120_000, isOfFleet: true },
  /** Writing a published object. */
  publishedObject: { baseMs: 250, maxMs: 30_000, isOfFleet: true },
  /** Writing a driver's ResourceSlices. */
  slices: { baseMs: 500, maxMs: 30_000, isOfFleet: true },
  /** Writing the Node's taints. */
  nodeTaints: { baseMs: 500, maxMs: 30_000, isOfFleet: true },
  /** Sending an eviction: not spread, since the deadlines of its steps count on it. */
  eviction: { baseMs: 500, maxMs: 15_000, jitter: 0 },
  /** Writing an Event. */
  event: { baseMs: 1_000, maxMs: 10_000, isOfFleet: true },

  /** Putting back what another client changes again and again, by what it is. */
  objectRepair: { baseMs: 500, maxMs: 60_000 },
  sliceRepair: { baseMs: 250, maxMs: 60_000, jitter: 0.3 },
  taintRepair: { baseMs: 500, maxMs: 30_000 },

  /** Offering a quarantined report to the API server again. Each try costs a write and a dry run for every plugin. */
  quarantinedReport: { baseMs: 1_000, maxMs: 60_000 },
  /** The same for quarantined devices. */
  quarantinedDevices: { baseMs: 1_000, maxMs: 600_000, jitter: 0.3 },

  /** Registration of a plugin that failed. */
  registration: { baseMs: 500, maxMs: 120_000 },
  /** Registration of a plugin that was refused: only a change of it, or of the configuration, helps. */
  refusedRegistration: { baseMs: 15_000, maxMs: 300_000 },
  /** A reporter plugin's stream. */
  reportStream: { baseMs: 500, maxMs: 30_000 },
  /** A driver's stream, as the kubelet of 1.31 had it. */
  driverStream: { baseMs: 5_000, maxMs: 180_000, jitter: 0.3, isFirstImmediate: true },
  /** A driver's report of health. */
  healthStream: { baseMs: 1_000, maxMs: 60_000, jitter: 0.3 },
  /** What is left to do for a driver's claims. */
  claims: { baseMs: 1_000, maxMs: 60_000 },
  /** The container runtime's events. */
  runtimeEvents: { baseMs: 500, maxMs: 30_000 },

  /** A plugin author's report that threw. */
  pluginReport: { baseMs: 500, maxMs: 30_000 },
  /** A client's watch of the agent. */
  agentWatch: { baseMs: 250, maxMs: 5_000, jitter: 0.3 },
} as const satisfies Record<string, RetryPolicy>;

const LONGEST_RETRY_AFTER_MS = 300_000;

/**
 * How long the other side requested to wait, milliseconds: 0 where it did not, 5 minutes where it requested more. It is
 * for `Backoff.next`.
 */
export function retryAfterOf(error: unknown): number {
  const requested = error instanceof NodekeeperError ? (error.retryAfterMs ?? 0) : 0;
  return Math.min(requested, LONGEST_RETRY_AFTER_MS);
}

const transient: ReadonlySet<ErrorCode> = new Set(["unavailable", "throttled", "deadline"]);
const nonRetryable: ReadonlySet<ErrorCode> = new Set([
  "forbidden",
  "unauthenticated",
  "unsupported",
  "invalid",
]);

/** Whether a failure passes by itself: the other side is unreachable or busy, and the same call may succeed later. */
export function isTransient(code: ErrorCode): boolean {
  return transient.has(code);
}

/** Whether trying again is of no use before an operator has changed something: a right, a version, the input. */
export function isNonRetryable(code: ErrorCode): boolean {
  return nonRetryable.has(code);
}
