import { plainYaml } from "../../../../agent/src/cli/plain-yaml.ts";
import type { EditedPolicy } from "./fields.ts";

/** The changed settings as the agent's configuration file has them; empty where none is changed. */
export function snippetOf(changed: EditedPolicy["changed"]): string {
  if (changed.length === 0) return "";
  const file: Record<string, unknown> = {};
  for (const { field, written } of changed) {
    const keys = field.setting.path.split(".");
    let node = file;
    for (const key of keys.slice(0, -1)) {
      node[key] ??= {};
      node = node[key] as Record<string, unknown>;
    }
    node[keys.at(-1)!] = written;
  }
  return plainYaml(file);
}

/** What has to be done for the snippet to be in force. */
export function applyingIt(changed: EditedPolicy["changed"]): string {
  const restart = changed.filter(({ field }) => !field.setting.isLive).map(({ field }) => field.setting.path);
  const live = "The agent applies the file when it changes.";
  if (restart.length === 0) return live;
  const needs = `${restart.join(", ")} ${restart.length === 1 ? "needs" : "need"} a restart of the agent.`;
  return restart.length === changed.length ? needs : `${live} ${needs}`;
}
