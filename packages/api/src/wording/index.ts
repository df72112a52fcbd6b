// Sentences about decisions and records, shared by the commands and the page.
export * from "./attribution.ts";
export * from "./condition.ts";
export * from "./coverage.ts";
export * from "./driver-problem.ts";
export * from "./dropped-text.ts";
export * from "./ending.ts";
export * from "./eviction-mode.ts";
export * from "./held.ts";
export * from "./kubelet.ts";
export * from "./pod.ts";
export * from "./replay.ts";
export * from "./round.ts";
export * from "./taint.ts";
export * from "./text.ts";
export * from "./time.ts";
export * from "./unserved.ts";
export * from "./verdict.ts";
