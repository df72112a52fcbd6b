import { settings } from "@nodekeeper/api/settings";
import { defaultConfigurationYaml } from "../packages/agent/src/config/index.ts";
import { tableOf, withTable } from "./docs/tables.ts";

/** docs/configuration.md with the default file and the table of its settings. Throws if the page has no place for them. */
export function configurationPage(page: string): string {
  const block = /```yaml\napiVersion:[\s\S]*?```/;
  if (!block.test(page)) throw new Error("there is no YAML block of the configuration to replace");
  // Without the comments: the table has the meaning of each setting.
  const file = defaultConfigurationYaml().replaceAll(/^\s*(#.*)?\n/gm, "");
  const rows = settings.map(({ path, about, initial, expected, isLive, flagName, envNames }) => [
    `\`${path}\``,
    `\`${typeof initial === "string" && initial !== "" ? initial : JSON.stringify(initial)}\``,
    about,
    expected,
    isLive ? "yes" : "",
    flagName ? `\`--${flagName}\`` : "",
    envNames.map((name) => `\`${name}\``).join(" "),
  ]);
  const table = tableOf(["setting", "default", "meaning", "expected", "live", "flag", "environment"], rows);
  return withTable(
    page.replace(block, () => `\`\`\`yaml\n${file}\`\`\``),
    table,
  );
}
