export type { PluginHandler, PluginRegistration } from "./types.ts";
