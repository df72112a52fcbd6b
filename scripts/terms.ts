// One term per concept, as docs/contributing/glossary.md has them. Style is not checked here: the glossary teaches it.
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { settings } from "@nodekeeper/api/settings";

interface Term {
  term: string;
  /** Other names for the same concept. Identifiers are split into words before: `dataFolder` is "data Folder". */
  synonyms: RegExp;
  reason: string;
  /** Only in code, without comments and quoted texts. */
  isOfCode?: true;
  /** Files that still have synonyms. */
  except?: RegExp;
  /** Not in tests, where `err` is what a command wrote to stderr. */
  exceptTests?: true;
}

const terms: readonly Term[] = [
  {
    term: "directory",
    synonyms: /\bfolders?\b/i,
    reason: "the term of file systems, the kubelet and systemd",
    except: /^packages\/agent\/src\/(claims|devices)\//,
  },
  {
    term: "quarantined (content) or on hold (threshold)",
    synonyms: /\b(held|holds?|holding) back\b/i,
    reason: "invalid content and thresholds without a victim are different states",
  },
  { term: "stripped pod", synonyms: /\blean pods?\b/i, reason: "names what is done to the pod" },
  {
    term: "last known good content",
    synonyms: /\bstands?[- ]ins?\b/i,
    reason: "plugins' content has this name in the API, logs and metrics",
  },
  { term: "soft eviction", synonyms: /\bsoftly\b/i, reason: "katalyst's term, as in its protos" },
  {
    term: "startup grace period",
    synonyms: /\bsettle time\b/,
    reason: "the setting's meaning is a grace period",
  },
  {
    term: "catch (error)",
    synonyms: /\bcatch \((?!error\b)\w+|\bthrown\b/,
    reason: "a caught error has one name",
    isOfCode: true,
  },
  {
    term: "error",
    synonyms: /(?<!\.)\berr\b(?!:)/,
    reason: "`err` is only the log's key",
    isOfCode: true,
    exceptTests: true,
  },
  {
    term: "log",
    synonyms: /\blogger\b(?!: ")|\bchild\(\{ (?:component|room):/,
    reason: "`logger` is only the log's key for a part of the agent, as in Kubernetes",
    isOfCode: true,
  },
];

const CHECKED =
  "{*.md,{packages,docs,scripts,bench,examples,deploy,proto/nodekeeper}/**/*.{ts,tsx,md,proto,yaml},test/**/*.ts}";
const SKIPPED =
  /(^|\/)(gen|node_modules|dist|fixtures)\/|^docs\/contributing\/glossary\.md$|^test\/check-terms\.test\.ts$|^scripts\/terms\.ts$/;

/** Terms that have another name in the repository at `root`, one line each: "docs/a.md:3: "folder": write directory (…)". */
export async function findTermProblems(root: string): Promise<string[]> {
  const problems: string[] = [];
  for await (const file of glob(CHECKED, { cwd: root })) {
    if (SKIPPED.test(file)) continue;
    const text = await readFile(join(root, file), "utf8");
    problems.push(...termProblemsIn(file, text), ...settingNameProblemsIn(file, text));
  }
  return problems.sort();
}

/** The same for one file. In test/ only code and the names of tests are checked. */
export function termProblemsIn(file: string, text: string): string[] {
  const isTest = file.startsWith("test/") || file.endsWith(".test.ts");
  return text.split("\n").flatMap((line, at) => {
    const isChecked = !file.startsWith("test/") || /^\s*((it|test|describe)\b.*\(|\]\)\()\s*["`]/.test(line);
    const words = isChecked ? line.replace(/([a-z0-9])([A-Z])/g, "$1 $2") : "";
    return terms.flatMap(({ term, synonyms, reason, except, isOfCode, exceptTests }) => {
      if (except?.test(file)) return [];
      if (isOfCode && (!/\.tsx?$/.test(file) || (exceptTests && isTest))) return [];
      const [found] = synonyms.exec(isOfCode ? withoutTexts(line) : words) ?? [];
      return found ? [`${file}:${at + 1}: "${found}": write ${term}: ${reason}`] : [];
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
 * Applies to files that convert the configuration into a module's settings, "…settings.ts".
 */
export function settingNameProblemsIn(file: string, source: string): string[] {
  if (!/^packages\/(?!.*\/config\/).*settings\.ts$/.test(file)) return [];
  const field = /\b(\w+): (?:[\w.]+\()*(?:\w+\.)*(\w+)\.(\w+)\b\)*(?= *(?:[,}/|]|$))/g;
  return source.split("\n").flatMap((line, at) =>
    [...withoutTexts(line).matchAll(field)].flatMap(([found, name, section, setting]) => {
      if (!settings.some(({ path }) => `.${path}`.endsWith(`.${section}.${setting}`))) return [];
      const stems = [setting!, setting!.replace(/Size$/, ""), setting!.replace(/s$/, "")].join("|");
      if (new RegExp(`^(${stems})(Ms|Bytes|Seconds|Percent|Keys)?$`).test(name!)) return [];
      return [`${file}:${at + 1}: "${found}": name the field after its setting`];
    }),
  );
}
