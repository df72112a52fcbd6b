// Configuration of the agent. packages/api/src/settings declares the settings; this module reads them from their
// sources. Terms:
//
// - source: a flag, an environment variable, the file, or the host name.
// - problem: an invalid value and its source. ConfigurationError lists all problems.
// - last good: the text of the file with which an agent of the state directory ran last.
// - reload: loading the configuration again on SIGHUP or when its file changes.
export { defaultConfigurationYaml } from "./default-yaml.ts";
export {
  type ConfigurationSources,
  type LoadedConfiguration,
  loadConfiguration,
  loadConfigurationForStart,
} from "./load.ts";
export { type ConfigMetrics, createConfigMetrics } from "./metrics.ts";
export { ConfigurationError, type Problem } from "./problem.ts";
export { checkVariables } from "./variables.ts";
export { ConfigurationWatcher, type ConfigurationWatcherOptions } from "./watcher.ts";
