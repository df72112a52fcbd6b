import type { GraceRules } from "./policy.ts";

/** A validated grace period, and why it differs from the requested one. */
export interface CheckedGrace {
  /** Whole seconds; null for the pod's own grace period. */
  seconds: number | null;
  problem: string | null;
}

/**
 * Checks the grace period that a plugin requests. Pure.
 *
 * 1. A negative or non-finite value, and 0 unless it is allowed, fall back to the pod's own grace period.
 * 2. Other values are rounded up to whole seconds and clamped to `shortestSeconds` and `longestSeconds`. An allowed 0
 *    is kept.
 * @param requested seconds; null for the pod's own
 */
export function checkGrace(requested: number | null, rules: GraceRules): CheckedGrace {
  if (requested === null) return { seconds: null, problem: null };
  if (!Number.isFinite(requested) || requested < 0) {
    return {
      seconds: null,
      problem: `requested grace period ${requested} s is not valid: the pod's own is used`,
    };
  }
  if (requested === 0 && !rules.allowZero) {
    return { seconds: null, problem: "requested grace period 0 s is not allowed: the pod's own is used" };
  }
  if (requested > rules.longestSeconds) {
    return {
      seconds: rules.longestSeconds,
      problem: `requested grace period ${requested} s lowered to the maximum of ${rules.longestSeconds} s`,
    };
  }
  const shortest = Math.min(rules.shortestSeconds, rules.longestSeconds);
  if (requested > 0 && requested < shortest) {
    return {
      seconds: shortest,
      problem: `requested grace period ${requested} s raised to the minimum of ${shortest} s`,
    };
  }
  return { seconds: Math.ceil(requested), problem: null };
}

/**
 * Returns the longest of several checked grace periods for one pod; null for the pod's own. Pure.
 * @param periods seconds; null for the pod's own
 * @param own the pod's own grace period, seconds
 */
export function longestGrace(periods: readonly (number | null)[], own: number): number | null {
  let longest: number | null = periods[0] ?? null;
  for (const requested of periods) {
    if ((requested ?? own) > (longest ?? own)) longest = requested;
    if (requested === null && longest === own) longest = null;
  }
  return longest;
}
