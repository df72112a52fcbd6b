import { setAt } from "@nodekeeper/api/settings";
import { plainYaml } from "@nodekeeper/api/text";
import type { EditedPolicy } from "./fields.ts";

/** Returns the changed settings as in the agent's configuration file. Empty if there are none. */
export function snippetOf(changed: EditedPolicy["changed"]): string {
  if (changed.length === 0) return "";
  const file = {};
  for (const { field, written } of changed) setAt(file, field.setting.path, written);
  return plainYaml(file);
}

/** Returns what is required for the snippet to take effect. */
export function applyingIt(changed: EditedPolicy["changed"]): string {
  const restart = changed.filter(({ field }) => !field.setting.isLive).map(({ field }) => field.setting.path);
  const live = "The agent applies the file when it changes.";
  if (restart.length === 0) return live;
  const needs = `${restart.join(", ")} ${restart.length === 1 ? "needs" : "need"} a restart of the agent.`;
  return restart.length === changed.length ? needs : `${live} ${needs}`;
}
