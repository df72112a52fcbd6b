// Replay of recorded rounds, and comparison with the record.
export * from "./open-questions.ts";
export * from "./policy-differences.ts";
export * from "./replay.ts";
