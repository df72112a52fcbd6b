// Schemas by which the agent reads stored state, and functions that create schemas. Separate from ../openapi, which the
// agent loads only when the OpenAPI document is requested.
export * from "./eviction-pod.ts";
export * from "./eviction-state.ts";
export * from "./mismatch.ts";
export * from "./schema.ts";
