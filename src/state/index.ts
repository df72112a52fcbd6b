export { StateDatabase, type StateDatabaseOptions } from "./database.ts";
export { type PublishedPart, ReporterStore, type StoredContent } from "./reporter-store.ts";
