import type { HealthCheck, Runnable } from "@nodekeeper/core/lib";
import type { JsonRoute } from "../server/index.ts";

/** A part of the agent: its runnables, and its checks and routes at the status server. */
export interface AgentPart {
  /** In start order. */
  readonly runnables: readonly Runnable[];
  readonly checks: readonly HealthCheck[];
  readonly routes: readonly JsonRoute[];
}
