// Schemas that the agent reads stored state by, and what all schemas are made of. Apart from the others, which are
// loaded only when the OpenAPI document is requested.
export * from "./eviction-pod.ts";
export * from "./eviction-state.ts";
export * from "./mismatch.ts";
export * from "./schema.ts";
