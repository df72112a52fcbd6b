import { readLeaf } from "./leaf.ts";
import { type AgentConfiguration, schema } from "./schema.ts";
import { type Setting, setAt, settingsIn, valueAt } from "./setting.ts";

/** All settings, in schema order. */
export const settings: readonly Setting[] = settingsIn(schema, "");

/** Builds a configuration from the value that `read` returns for each setting. */
export function assemble(read: (setting: Setting) => unknown): AgentConfiguration {
  const root = {};
  for (const setting of settings) setAt(root, setting.path, read(setting));
  return root as AgentConfiguration;
}

/** Returns the configuration of an empty file. Its node name is empty. */
export function defaultConfiguration(): AgentConfiguration {
  return assemble((setting) => readLeaf(setting, setting.initial));
}

/** Returns the paths of settings whose values differ. */
export function changedPaths(before: AgentConfiguration, after: AgentConfiguration): string[] {
  return settings
    .map(({ path }) => path)
    .filter((path) => JSON.stringify(valueAt(before, path)) !== JSON.stringify(valueAt(after, path)));
}
