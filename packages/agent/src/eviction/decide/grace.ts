import type { GraceRules } from "./policy.ts";

/** A grace period as it may be used, and what was wrong with the requested one. */
export interface CheckedGrace {
  /** Whole seconds; null is the pod's own. */
  seconds: number | null;
  problem: string | null;
}

/**
 * Checks the grace period that a plugin requests, in seconds; null stands for the pod's own. What is negative, no number, or
 * a 0 that is not allowed falls back to the pod's own, never to killing at once; what is too short is raised, what is too long is cut.
 */
export function checkGrace(requested: number | null, rules: GraceRules): CheckedGrace {
  if (requested === null) return { seconds: null, problem: null };
  if (!Number.isFinite(requested) || requested < 0) {
    return {
      seconds: null,
      problem: `a grace period of ${requested} s makes no sense: the pod's own is used`,
    };
  }
  if (requested === 0 && !rules.allowZero) {
    return { seconds: null, problem: "a grace period of 0 s is not allowed: the pod's own is used" };
  }
  if (requested > rules.longestSeconds) {
    return {
      seconds: rules.longestSeconds,
      problem: `a grace period of ${requested} s is too long: cut to ${rules.longestSeconds} s`,
    };
  }
  const shortest = Math.min(rules.shortestSeconds, rules.longestSeconds);
  if (requested > 0 && requested < shortest) {
    return {
      seconds: shortest,
      problem: `a grace period of ${requested} s is too short: raised to ${shortest} s`,
    };
  }
  return { seconds: Math.ceil(requested), problem: null };
}

/** The gentlest of several checked grace periods for one pod whose own grace period is `own`; null is the pod's own. */
export function gentlestGrace(periods: readonly (number | null)[], own: number): number | null {
  let gentlest: number | null = periods[0] ?? null;
  for (const requested of periods) {
    if ((requested ?? own) > (gentlest ?? own)) gentlest = requested;
    if (requested === null && gentlest === own) gentlest = null;
  }
  return gentlest;
}
