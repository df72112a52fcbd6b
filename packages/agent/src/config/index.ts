// Configuration of the agent. Terms:
// setting: one value, declared in schema.ts with its default, range and help text; section: a group of settings.
// leaf: the parser of a setting's value. source: a flag, an environment variable, the file, or the host name.
// live: a setting that a reload applies; the others need a restart.
// problem: one invalid value with its source; ConfigurationError lists all of them.
// reload: loading the configuration again on SIGHUP or when its file changes.
export { defaultConfigurationYaml } from "./default-yaml.ts";
export { configurationInForceSchema, configurationJsonSchema } from "./json-schema.ts";
export {
  type ConfigurationSources,
  defaultConfiguration,
  type LoadedConfiguration,
  loadConfiguration,
} from "./load.ts";
export { type ConfigMetrics, createConfigMetrics } from "./metrics.ts";
export { ConfigurationError, type Problem } from "./problem.ts";
export type { AgentConfiguration } from "./schema.ts";
export type { Setting } from "./setting.ts";
export { settings } from "./settings.ts";
export { ConfigurationWatcher, type ConfigurationWatcherOptions, type ReloadState } from "./watcher.ts";
