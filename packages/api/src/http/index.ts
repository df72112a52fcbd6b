// Requests of the HTTP API. Response schemas are in ../openapi, which the agent loads on demand.
export * from "./mark-kinds.ts";
export * from "./operations.ts";
export * from "./parameters.ts";
export * from "./stream.ts";
export * from "./stream-topics.ts";
