import { ReporterNotResponding, StateNotWritable } from "@nodekeeper/api/errors";
import type { HealthResult } from "@nodekeeper/core/lib";
import { joinedErrors } from "../plugins/index.ts";
import type { Endpoint } from "./endpoint.ts";

export interface FetcherState {
  endpoints: readonly Endpoint[];
  /** Monotonic milliseconds. */
  now: number;
  startedAt: number;
  /** A plugin without a successful call for longer than this is failing. In milliseconds. */
  timeoutMs: number;
  checkpointError: string | undefined;
}

/** Fails while an in-tree plugin does not respond or the checkpoint cannot be written. */
export function fetcherHealth(state: FetcherState): HealthResult {
  const { endpoints, now, startedAt, timeoutMs, checkpointError } = state;
  const failing = endpoints.filter(
    ({ stoppedAt, lastSuccess }) => stoppedAt === undefined && now - (lastSuccess ?? startedAt) > timeoutMs,
  );
  const names = failing
    .map(
      (endpoint) =>
        `${endpoint.name} (${joinedErrors(endpoint.errors.values())?.message ?? "no response yet"})`,
    )
    .join(", ");
  // Failing external plugins are only listed. They do not make the agent unready.
  if (failing.some(({ inTree }) => inTree))
    return { ok: false, message: `no content from ${names}`, errorId: ReporterNotResponding.id };
  if (checkpointError)
    return { ok: false, message: `checkpoint: ${checkpointError}`, errorId: StateNotWritable.id };
  return { ok: true, message: names ? `no content from ${names}` : `${endpoints.length} plugins` };
}
