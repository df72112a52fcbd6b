import type { ErrorId } from "./errors.ts";

/** What a health check found. `message` is for a person: what is wrong, since when, what was last seen. */
export interface HealthResult {
  ok: boolean;
  message: string;
  /** What is wrong although the check passes, such as a runtime that is slow; for a person. */
  warning?: string;
  /** The id of the failure or warning, where docs/errors.md has it. */
  errorId?: ErrorId | undefined;
}

/** A named check. It answers from memory: it never waits, and makes no calls. */
export interface HealthCheck {
  readonly name: string;
  /** `live`: failing means the process should be restarted. `ready`: failing means that it can't do its work now. */
  readonly kind: "live" | "ready";
  check(): HealthResult;
}
