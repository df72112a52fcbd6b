import type { Rule, RuleId } from "./rules.ts";

/** The result of one check. */
export interface Finding extends Rule {
  rule: RuleId;
  result: "pass" | "fail" | "skip";
  /** Milliseconds that the check took. */
  ms: number;
  /** Why it failed or was skipped, or what was measured. Empty if there is nothing to add. */
  message: string;
}

/** Thrown by a check that does not apply to the driver. */
export class Skipped extends Error {}

/** Thrown by a check that the driver fails. */
export class RuleBroken extends Error {}
