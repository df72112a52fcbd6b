export {
  type ConfigurationSources,
  defaultConfiguration,
  type LoadedConfiguration,
  loadConfiguration,
} from "./load.ts";
export { ConfigurationError, type Problem } from "./problem.ts";
export type { AgentConfiguration } from "./schema.ts";
export { type Setting, settings } from "./settings.ts";
