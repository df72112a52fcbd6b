export * from "./coverage.ts";
export * from "./explain.ts";
export * from "./explain-node.ts";
export * from "./pod.ts";
export * from "./round-record.ts";
export * from "./round-summary.ts";
