import type { roundRecord, ValueOf } from "../openapi/index.ts";

/**
 * The input of `decide`, as plain JSON: pods and plugins in any order. The times in `state` refer to the same clock as
 * `now`: see `stateAt`. `tops` are the answers to the GetTopEvictionPods calls of `prepareRound`.
 */
export type DecideInput = ValueOf<typeof roundRecord>["input"];

/** The input of a round before GetTopEvictionPods. */
export type RoundInput = Omit<DecideInput, "tops">;
