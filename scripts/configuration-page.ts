// docs/configuration.md: the default file and the table of all settings in it.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Setting, settings } from "@nodekeeper/api/settings";
import { defaultConfigurationYaml } from "../packages/agent/src/config/index.ts";
import { root } from "./run-command.ts";

/** Where the page is. */
export const CONFIGURATION_PAGE = "docs/configuration.md";

/** The page with what the schema gives. Throws where the page lacks its YAML block or its table. */
export async function configurationPage(): Promise<string> {
  const page = await readFile(join(root, CONFIGURATION_PAGE), "utf8");
  const withFile = replaceOnce(page, /```yaml\napiVersion:[\s\S]*?```/, `\`\`\`yaml\n${defaultFile()}\`\`\``);
  const table = ["| setting | default | expected | live | flag | environment |", "|---|---|---|---|---|---|"];
  return replaceOnce(
    withFile,
    /\| setting \| default [\s\S]*?(?=\n\n|\n?$)/,
    [...table, ...settings.map(row)].join("\n"),
  );
}

// Without the comments: the table has the meaning of each setting.
function defaultFile(): string {
  const lines = defaultConfigurationYaml().split("\n");
  return lines
    .filter((line) => line.trim() !== "" && !line.trim().startsWith("#"))
    .join("\n")
    .concat("\n");
}

function row({ path, initial, expected, isLive, flagName, envNames }: Setting): string {
  const shown = typeof initial === "string" && initial !== "" ? initial : JSON.stringify(initial);
  const cells = [
    `\`${path}\``,
    `\`${shown}\``,
    expected,
    isLive ? "yes" : "",
    flagName ? `\`--${flagName}\`` : "",
    envNames.map((name) => `\`${name}\``).join(" "),
  ];
  return `| ${cells.join(" | ")} |`;
}

function replaceOnce(text: string, pattern: RegExp, by: string): string {
  if (!pattern.test(text)) throw new Error(`${CONFIGURATION_PAGE} has nothing like ${pattern}`);
  return text.replace(pattern, () => by);
}
