// Writes the default file and the table of all settings into docs/configuration.md.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defaultConfigurationYaml, type Setting, settings } from "../packages/agent/src/config/index.ts";
import { root } from "./run-command.ts";

/** Brings docs/configuration.md in step with the schema. Throws where the page lacks its YAML block or its table. */
export async function writeConfigurationPage(): Promise<void> {
  const path = join(root, "docs/configuration.md");
  const page = await readFile(path, "utf8");
  const withFile = replaceOnce(page, /```yaml\napiVersion:[\s\S]*?```/, `\`\`\`yaml\n${defaultFile()}\`\`\``);
  const table = ["| setting | default | expected | live | flag | environment |", "|---|---|---|---|---|---|"];
  const changed = replaceOnce(
    withFile,
    /\| setting \| default [\s\S]*?(?=\n\n|\n?$)/,
    [...table, ...settings.map(row)].join("\n"),
  );
  if (changed !== page) await writeFile(path, changed);
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
  if (!pattern.test(text)) throw new Error(`docs/configuration.md has nothing like ${pattern}`);
  return text.replace(pattern, () => by);
}
