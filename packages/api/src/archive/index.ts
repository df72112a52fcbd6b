// Exported records, as a store of logs returns them, and what they say.
export * from "./events.ts";
export * from "./evictions.ts";
export * from "./explain-node.ts";
export * from "./explain-pod.ts";
export * from "./owner.ts";
export * from "./read-record.ts";
export * from "./record.ts";
