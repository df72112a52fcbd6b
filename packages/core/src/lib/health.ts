import type { ErrorId } from "@nodekeeper/api/errors";

/** Result of a health check. `message` is for operators: what fails, since when, and what was last observed. */
export interface HealthResult {
  ok: boolean;
  message: string;
  /** A problem that does not fail the check, such as a slow runtime, for operators. */
  warning?: string;
  /** ID of the failure or warning in docs/errors.md. */
  errorId?: ErrorId | undefined;
}

/** A named check. `check` only uses state in memory. It never waits or makes calls. */
export interface HealthCheck {
  readonly name: string;
  /** `live`: on failure, the process should be restarted. `ready`: on failure, the agent cannot do its work. */
  readonly kind: "live" | "ready";
  check(): HealthResult;
}
