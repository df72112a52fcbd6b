import type { HealthResult } from "@nodekeeper/core/lib";
import { type Endpoint, errorOf } from "./endpoint.ts";

export interface FetcherState {
  endpoints: readonly Endpoint[];
  /** Monotonic milliseconds. */
  now: number;
  startedAt: number;
  /** A plugin that gave nothing for longer is failing, milliseconds. */
  patienceMs: number;
  checkpointError: string | undefined;
}

/** Fails while an in-tree plugin does not answer, or the checkpoint can't be written. */
export function fetcherHealth(state: FetcherState): HealthResult {
  const { endpoints, now, startedAt, patienceMs, checkpointError } = state;
  const failing = endpoints.filter(
    ({ stoppedAt, lastSuccess }) => stoppedAt === undefined && now - (lastSuccess ?? startedAt) > patienceMs,
  );
  const names = failing
    .map((endpoint) => `${endpoint.name} (${errorOf(endpoint) ?? "no answer yet"})`)
    .join(", ");
  // Another team's broken plugin must not take the agent out of service: it is named, and the check stays good.
  if (failing.some(({ inTree }) => inTree)) return { ok: false, message: `no content from ${names}` };
  if (checkpointError) return { ok: false, message: `checkpoint: ${checkpointError}` };
  return { ok: true, message: names ? `no content from ${names}` : `${endpoints.length} plugins` };
}
