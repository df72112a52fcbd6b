import type { GraceRules } from "./policy.ts";

/** A grace period as it may be used, and what was wrong with the wish. */
export interface CheckedGrace {
  /** Whole seconds; null is the pod's own. */
  seconds: number | null;
  problem: string | null;
}

/**
 * Checks a plugin's wish for a grace period, in seconds; null stands for the pod's own. What is negative, no number, or
 * a 0 that is not allowed falls back to the pod's own, never to killing at once; what is too long is cut.
 */
export function checkGrace(wish: number | null, rules: GraceRules): CheckedGrace {
  if (wish === null) return { seconds: null, problem: null };
  if (!Number.isFinite(wish) || wish < 0) {
    return { seconds: null, problem: `a grace period of ${wish} s makes no sense: the pod's own is used` };
  }
  if (wish === 0 && !rules.allowZero) {
    return { seconds: null, problem: "a grace period of 0 s is not allowed: the pod's own is used" };
  }
  if (wish > rules.longestSeconds) {
    return {
      seconds: rules.longestSeconds,
      problem: `a grace period of ${wish} s is too long: cut to ${rules.longestSeconds} s`,
    };
  }
  return { seconds: Math.ceil(wish), problem: null };
}

/** The gentlest of several checked wishes for one pod whose own grace period is `own`; null is the pod's own. */
export function gentlestGrace(wishes: readonly (number | null)[], own: number): number | null {
  let gentlest: number | null = wishes[0] ?? null;
  for (const wish of wishes) {
    if ((wish ?? own) > (gentlest ?? own)) gentlest = wish;
    if (wish === null && gentlest === own) gentlest = null;
  }
  return gentlest;
}
