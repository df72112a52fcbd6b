// Replay of recorded rounds, and its comparison with the record. Pure: the page bundles it.
export { type EvictionPolicy, isDryRun, isFullDryRun } from "../decide/policy.ts";
export { type PolicyDifference, policyDifferences } from "./policy-differences.ts";
export {
  addToReplay,
  emptyReplay,
  type Replay,
  type ReplayedRound,
  type ReplayedVictim,
} from "./replay.ts";
export type { RoundRecord } from "./round-record.ts";
