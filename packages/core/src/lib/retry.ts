import { type ErrorCode, NodekeeperError } from "@nodekeeper/api/errors";
import type { BackoffOptions } from "./backoff.ts";

/**
 * Delays between attempts: from `baseMs`, doubling up to `maxMs`, spread by `jitter` (default 0.2) or over the fleet.
 */
export type RetryPolicy = Readonly<
  Pick<BackoffOptions, "baseMs" | "maxMs" | "jitter" | "isOfFleet" | "isFirstImmediate">
>;

/** Delays of `RepairPace`, in milliseconds. The first one is twice `baseMs`. */
export interface RepairPolicy extends RetryPolicy {
  /** Number of repairs without a delay. Default 1. */
  readonly immediate?: number;
  /** Period without repairs after which one is forgotten. Default: none. All are forgotten after 5 min in any case. */
  readonly forgetOneMs?: number;
}

/** All retry policies of the agent, by retried operation. In milliseconds. */
export const retryPolicies = {
  /** List or watch of the API server. All agents lose theirs simultaneously: docs/fleet.md. */
  apiWatch: { baseMs: 5_000, maxMs: 30_000, isOfFleet: true },
  /** Discovery of the ResourceSlice versions that the API server serves. */
  sliceDiscovery: { baseMs: 5_000, maxMs: 120_000, isOfFleet: true },
  /** Writing a published object. */
  publishedObject: { baseMs: 250, maxMs: 30_000, isOfFleet: true },
  /** Reading an object that no plugin reports. Repeated as long as the agent has no permission. */
  unreportedObject: { baseMs: 1_000, maxMs: 600_000, isOfFleet: true },
  /** Writing a driver's ResourceSlices. */
  slices: { baseMs: 500, maxMs: 30_000, isOfFleet: true },
  /** Writing the status of a claim's devices. */
  claimStatus: { baseMs: 1_000, maxMs: 60_000, isOfFleet: true },
  /** Writing the Node's taints. */
  nodeTaints: { baseMs: 500, maxMs: 30_000, isOfFleet: true },
  /** Sending an eviction. Not spread, because the deadlines of its steps depend on it. */
  eviction: { baseMs: 500, maxMs: 15_000, jitter: 0 },
  /** Writing an Event. */
  event: { baseMs: 1_000, maxMs: 10_000, isOfFleet: true },
  /** Exporting records to a collector, which all agents share. */
  archive: { baseMs: 1_000, maxMs: 60_000, isOfFleet: true },

  /** Restoring content that another client keeps changing. */
  objectRepair: { baseMs: 500, maxMs: 60_000 },
  /** The kubelet deletes its node's slices when it restarts. This is not a conflict. */
  sliceRepair: { baseMs: 250, maxMs: 60_000, jitter: 0.3, immediate: 3, forgetOneMs: 5_000 },
  taintRepair: { baseMs: 500, maxMs: 30_000 },

  /** Retrying a quarantined report. Each attempt costs a write and a dry run for every plugin. */
  quarantinedReport: { baseMs: 1_000, maxMs: 60_000 },
  /** Retrying quarantined devices. */
  quarantinedDevices: { baseMs: 1_000, maxMs: 600_000, jitter: 0.3 },

  /** Registration of a plugin after a failure. */
  registration: { baseMs: 500, maxMs: 120_000 },
  /** Registration of a plugin that was rejected. Only a change of the plugin or the configuration helps. */
  refusedRegistration: { baseMs: 15_000, maxMs: 300_000 },
  /** A reporter plugin's stream. */
  reportStream: { baseMs: 500, maxMs: 30_000 },
  /** A driver's stream, as in the kubelet of 1.31. */
  driverStream: { baseMs: 5_000, maxMs: 180_000, jitter: 0.3, isFirstImmediate: true },
  /** A driver's stream of its devices' health or status. */
  driverReports: { baseMs: 1_000, maxMs: 60_000, jitter: 0.3 },
  /** Deferred work on a driver's claims. */
  claims: { baseMs: 1_000, maxMs: 60_000 },
  /** The container runtime's event stream. */
  runtimeEvents: { baseMs: 500, maxMs: 30_000 },

  /** A plugin author's report function that threw. */
  pluginReport: { baseMs: 500, maxMs: 30_000 },
  /** A client's watch of the agent's API. */
  agentWatch: { baseMs: 250, maxMs: 5_000, jitter: 0.3 },
} as const satisfies Record<string, RetryPolicy | RepairPolicy>;

const LONGEST_RETRY_AFTER_MS = 300_000;

/** Returns the delay that the peer requested, in milliseconds. Undefined if it requested none. */
export function requestedWaitOf(error: unknown): number | undefined {
  return error instanceof NodekeeperError ? error.retryAfterMs : undefined;
}

/** Returns the same for `Backoff.next`: 0 if the peer requested no delay, and at most 5 minutes. */
export function retryAfterOf(error: unknown): number {
  return Math.min(requestedWaitOf(error) ?? 0, LONGEST_RETRY_AFTER_MS);
}

const transient: ReadonlySet<ErrorCode> = new Set(["unavailable", "throttled", "deadline"]);
const nonRetryable: ReadonlySet<ErrorCode> = new Set([
  "forbidden",
  "unauthenticated",
  "unsupported",
  "invalid",
]);

/** Returns whether a failure may be temporary: the peer is unreachable or busy, and the same call may succeed later. */
export function isTransient(code: ErrorCode): boolean {
  return transient.has(code);
}

/** Returns whether retries fail until an operator changes a permission, a version or the input. */
export function isNonRetryable(code: ErrorCode): boolean {
  return nonRetryable.has(code);
}
