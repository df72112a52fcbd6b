export { defaultConfigurationYaml } from "./default-yaml.ts";
export { configurationJsonSchema } from "./json-schema.ts";
export {
  type ConfigurationSources,
  defaultConfiguration,
  type LoadedConfiguration,
  loadConfiguration,
} from "./load.ts";
export { type ConfigMetrics, createConfigMetrics } from "./metrics.ts";
export { ConfigurationError, type Problem } from "./problem.ts";
export type { AgentConfiguration } from "./schema.ts";
export { type Setting, settings } from "./settings.ts";
export { ConfigurationWatcher, type ConfigurationWatcherOptions, type ReloadState } from "./watcher.ts";
