// Declarations of all settings of the agent. Terms:
//
// - setting: a value with its default, range and help text; section: a group of settings.
// - leaf: how a setting's value is parsed; live: a reload applies the setting. Others require a restart.
export { policySettings, readTyped, type TypedValue } from "./edit-setting.ts";
export {
  type InTreeReporterName,
  inTreeEvictionNames,
  inTreeReporterNames,
} from "./in-tree-plugins.ts";
export { configurationInForceSchema, configurationJsonSchema } from "./json-schema.ts";
export { readLeaf, wrongValue } from "./leaf.ts";
export { isNodeName } from "./patterns.ts";
export { type AgentConfiguration, apiVersion, type EvictionSettings, kind, schema } from "./schema.ts";
export { isSection, type Section } from "./section.ts";
export { type Setting, setAt, valueAt } from "./setting.ts";
export { assemble, changedPaths, defaultConfiguration, settings } from "./settings.ts";
