import { readLeaf } from "./leaf.ts";
import { type AgentConfiguration, schema } from "./schema.ts";
import { type Setting, settingsIn } from "./setting.ts";

/** All settings, in schema order. */
export const settings: readonly Setting[] = settingsIn(schema, "");

/** Returns the value of a setting in a configuration. */
export function valueAt(configuration: AgentConfiguration, path: string): unknown {
  let node: unknown = configuration;
  for (const name of path.split(".")) node = (node as Record<string, unknown>)[name];
  return node;
}

/** Builds a configuration from the value that `read` returns for each setting. */
export function assemble(read: (setting: Setting) => unknown): AgentConfiguration {
  const root: Record<string, unknown> = {};
  for (const setting of settings) {
    const names = setting.path.split(".");
    let node = root;
    for (const name of names.slice(0, -1)) {
      node[name] ??= {};
      node = node[name] as Record<string, unknown>;
    }
    node[names.at(-1)!] = read(setting);
  }
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
