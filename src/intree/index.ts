export { enabledPlugins, type KnownPlugin } from "./enabled-plugins.ts";
export { SYSTEM_REPORTER_NAME, SystemReporter, type SystemReporterOptions } from "./system-reporter.ts";
