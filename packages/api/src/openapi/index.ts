// The responses of the HTTP API as schemas, from which types and the OpenAPI document are derived. The agent imports
// only types from here, and loads the rest (0.3 MB) when the document is requested.

export * from "../schemas/index.ts";
export * from "./answers.ts";
export * from "./eviction.ts";
export * from "./eviction-decision.ts";
export * from "./eviction-round.ts";
export * from "./openapi.ts";
