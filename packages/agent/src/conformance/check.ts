import type { Bench } from "./bench.ts";
import type { RuleId } from "./rules.ts";

/** Checks one rule. */
export interface Check {
  rule: RuleId;
  /** Rules that must have passed. Otherwise the check is skipped. */
  needs: readonly RuleId[];
  /**
   * Returns what was measured, if anything. Throws `Skipped` if the rule does not apply; any other error means that the
   * driver breaks the rule.
   */
  run(bench: Bench): Promise<string | undefined>;
}
