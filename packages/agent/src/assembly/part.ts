import type { HealthCheck, Runnable } from "@nodekeeper/core/lib";
import type { JsonRoute } from "../server/index.ts";

/** A part of the agent: what it runs, and what the status server serves of it. */
export interface AgentPart {
  /** In the order in which they start. */
  readonly runnables: readonly Runnable[];
  readonly checks: readonly HealthCheck[];
  readonly routes: readonly JsonRoute[];
}
