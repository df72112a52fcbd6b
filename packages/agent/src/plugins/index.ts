export { PluginManager } from "./manager.ts";
export type { PluginStatus } from "./status.ts";
export type { PluginHandler, PluginRegistration } from "./types.ts";
