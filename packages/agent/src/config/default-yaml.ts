import {
  apiVersion,
  isSection,
  kind,
  type Section,
  type Setting,
  schema,
  settings,
} from "@nodekeeper/api/settings";
import { stringify } from "yaml";

const WIDTH = 100;

/** Returns a configuration file that contains every setting with its default value and a comment. */
export function defaultConfigurationYaml(): string {
  const header = [
    ...comment(`${schema.about} Omitted settings have the defaults below.`, ""),
    ...comment("Flags override environment variables, and environment variables override this file.", ""),
    "# Live settings are applied when this file changes and on SIGHUP; the others need a restart.",
    `apiVersion: ${apiVersion}`,
    `kind: ${kind}`,
  ];
  return `${[...header, ...linesOf(schema, "")].join("\n")}\n`;
}

function linesOf(section: Section, prefix: string): string[] {
  const depth = prefix === "" ? 0 : prefix.split(".").length - 1;
  const indent = "  ".repeat(depth);
  return Object.entries(section.settings).flatMap(([name, node]) => {
    const blank = depth === 0 ? [""] : [];
    if (isSection(node)) {
      return [
        ...blank,
        ...comment(node.about, indent),
        `${indent}${name}:`,
        ...linesOf(node, `${prefix}${name}.`),
      ];
    }
    const setting = settings.find(({ path }) => path === prefix + name)!;
    return [...blank, ...describe(setting, indent), ...assignment(indent, name, setting.initial)];
  });
}

function describe(setting: Setting, indent: string): string[] {
  const { about, expected, isLive, flagName, envNames } = setting;
  return [
    ...comment(about, indent),
    ...comment(`Expected: ${expected}.${isLive ? " Live." : ""}`, indent),
    ...comment([...(flagName === undefined ? [] : [`--${flagName}`]), ...envNames].join(", "), indent),
  ];
}

// Lists that do not fit on one line have one item per line.
function assignment(indent: string, name: string, value: unknown): string[] {
  const line = `${indent}${name}: ${written(value)}`;
  if (!Array.isArray(value) || line.length <= WIDTH) return [line];
  return [`${indent}${name}:`, ...value.map((item) => `${indent}  - ${written(item)}`)];
}

// JSON is valid YAML. Plain strings are not quoted.
function written(value: unknown): string {
  return typeof value === "string" && value !== "" ? stringify(value).trimEnd() : JSON.stringify(value);
}

function comment(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && indent.length + line.length + word.length + 3 > WIDTH) {
      lines.push(line);
      line = "";
    }
    line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => `${indent}# ${each}`);
}
