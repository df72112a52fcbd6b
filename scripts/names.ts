import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { settings } from "../packages/agent/src/config/index.ts";

interface NameRule {
  pattern: RegExp;
  instead: string;
  /** Tests that run a command call what it wrote to stderr `err`. */
  exceptTests?: boolean;
}

/** One word per thing in code. Comments and texts in double quotes are not looked at. */
const rules: readonly NameRule[] = [
  { pattern: /\bcatch \((?!error\b)\w+/, instead: "catch (error)" },
  { pattern: /\bthrown\b/, instead: "error" },
  { pattern: /(?<!\.)\berr\b(?!:)/, instead: "error; `err` is the log's key alone", exceptTests: true },
  // `logger` is the key of a log line, as in Kubernetes.
  { pattern: /#?\blogger\b(?!: ")/, instead: "log" },
  { pattern: /\bchild\(\{ (?:component|room):/, instead: "logger, as the log's key for a part of the agent" },
];

/** What breaks the rules in the repository at `root`, one line each. */
export async function findNameProblems(root: string): Promise<string[]> {
  const problems: string[] = [];
  for await (const entry of glob("{packages/*/src,test,bench,examples,scripts}/**/*.{ts,tsx}", {
    cwd: root,
  })) {
    const file = entry.replaceAll("\\", "/");
    if (
      file.startsWith("packages/core/src/gen/") ||
      /^(scripts\/names|test\/check-names\.test)\.ts$/.test(file)
    )
      continue;
    const source = await readFile(join(root, file), "utf8");
    problems.push(...nameProblemsIn(file, source), ...settingNameProblemsIn(file, source));
  }
  return problems.sort();
}

/** The same for one file. */
export function nameProblemsIn(file: string, source: string): string[] {
  return source.split("\n").flatMap((line, at) => {
    const code = withoutTexts(line);
    return rules.flatMap(({ pattern, instead, exceptTests = false }) => {
      const found = exceptTests && file.endsWith(".test.ts") ? undefined : pattern.exec(code)?.[0];
      if (found === undefined) return [];
      return [`${file}:${at + 1}: "${found}": write ${instead}`];
    });
  });
}

function withoutTexts(line: string): string {
  if (/^\s*(\*|\/\/|\/\*)/.test(line)) return "";
  return line.replace(/"(?:[^"\\]|\\.)*"/g, '""').replace(/\/\/ .*$/, "");
}

/**
 * Fields that take their value from a setting of another name: `longMs: lifecycle.relistPeriod`. A field has the name of
 * its setting, with the unit of its value: `relistPeriodMs`, `maxMessageBytes` of maxMessageSize, `labelKeys` of labels.
 * Read are the files that make a module's settings from the configuration, "…settings.ts".
 */
export function settingNameProblemsIn(file: string, source: string): string[] {
  if (!file.endsWith("settings.ts") || file.includes("/config/")) return [];
  return source.split("\n").flatMap((line, at) =>
    [
      ...withoutTexts(line).matchAll(/\b(\w+): (?:[\w.]+\()*(?:\w+\.)*(\w+)\.(\w+)\b\)*(?= *(?:[,}/|]|$))/g),
    ].flatMap(([found, field, section, setting]) => {
      if (!settings.some(({ path }) => `.${path}`.endsWith(`.${section}.${setting}`))) return [];
      const names = [setting!, setting!.replace(/Size$/, ""), setting!.replace(/s$/, "")].join("|");
      if (new RegExp(`^(${names})(Ms|Bytes|Seconds|Percent|Keys)?$`).test(field!)) return [];
      return [`${file}:${at + 1}: "${found}": name the field after its setting`];
    }),
  );
}
