import type { roundSummary, ValueOf } from "../openapi/index.ts";

/**
 * One round, as a line of `nodekeeper rounds`. `met` is, for example, "memory-pressure (hard): memory 94.1 > threshold
 * 90", followed by ", within its grace period" before it is confirmed, or by the reason of a hold.
 */
export type RoundSummary = ValueOf<typeof roundSummary>;

/** A requested pod whose last eviction failed: when it may be retried, and the PodDisruptionBudget that refused it. */
export type PausedSummary = NonNullable<RoundSummary["paused"]>[number];
