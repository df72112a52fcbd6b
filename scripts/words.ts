import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";

/** A word that docs/contributing/glossary.md replaces by the field's own. */
export interface BannedWord {
  /** Matched against each line, in which identifiers are split: `toldAt` reads "told At". */
  pattern: RegExp;
  /** What to write. */
  instead: string;
  /** Other senses of the word: they are cut out of a line before `pattern` is tried. */
  except?: RegExp;
}

export const bannedWords: readonly BannedWord[] = [
  {
    pattern: /\b(tells?|telling|told|says?|saying|said)\b/i,
    // The test plugin's method.
    except: /\bplugin\.say\(/g,
    instead: "report, send, emit, log, return, notify; distinguish",
  },
  { pattern: /\banew\b/i, instead: "again, recreated" },
  // Records of earlier versions have it as the stage of a withdrawal.
  {
    pattern: /\b(begun|began)\b/i,
    except: /\bbegun: "started"|'"begun"'|in place of `begun`/g,
    instead: "started",
  },
  { pattern: /\bwish(es|ed|ing)?\b/i, instead: "request, requested" },
  { pattern: /\bfates?\b/i, instead: "outcome, verdict" },
  { pattern: /\bbeliev(es?|ed|ing)\b/i, instead: "reconcile, last known" },
  { pattern: /\bspar(e[sd]|ing)\b/i, instead: "not evicted, skipped" },
  { pattern: /\bhopeless\b/i, instead: "non-retryable" },
  { pattern: /\bin vain\b/i, instead: "without success" },
  { pattern: /\bfor ever\b/i, instead: "indefinitely" },
  {
    pattern: /\b(held|holds?|holding) back\b/i,
    instead: "quarantined (invalid content), on hold (a threshold)",
  },
  { pattern: /\bstands?[- ]ins?\b/i, instead: "last known good content" },
  { pattern: /\blean pods?\b/i, instead: "stripped pod" },
  { pattern: /\boddit(y|ies)\b/i, instead: "anomaly" },
  // Lower case only: the settings inspectionPatience and settleTime keep their names.
  { pattern: /\bpatience\b/, except: /inspection-patience/g, instead: "timeout, deadline" },
  { pattern: /\balarms?\b/i, instead: "wakeable sleep" },
  { pattern: /\bsettle time\b/, instead: "startup grace period" },
  { pattern: /\bsoftly\b/i, instead: "soft eviction" },
  {
    pattern: /\b(somebody|anybody|everybody|whoever)\b/i,
    instead: "the actor: another client, a plugin, any pod",
  },
  { pattern: /\bnobody\b/i, instead: "the actor: no plugin, no pod, no client" },
  { pattern: /\b(go(es)?|going|went) on\b/i, instead: "continue, resume" },
  { pattern: /\b(go(es)?|going|went|gone) wrong\b/i, instead: "fail; failure, error" },
  {
    pattern: /\b(has|have|had) to go\b|\blet go\b|\bon (its|their) way out\b/i,
    instead: "is evicted, is removed; terminating",
  },
  {
    // HTTP status 410, and the result of an eviction in records of earlier versions.
    except:
      /\b410\b[^.]*?\bgone\b|\bgone\b[^.]*?\b410\b|\bgone: "terminated"|"gone" as "terminated"|'"gone"'|in place of `gone`/gi,
    pattern: /\bgone\b/i,
    instead:
      "deleted (object), exited (process), disconnected (plugin), expired (record), terminated (pod), unavailable (socket)",
  },
  { pattern: /\b(is|are|was|were|be|been|go|goes|went) away\b/i, instead: "is unavailable, is unreachable" },
  { pattern: /\bturns? the health check\b/i, instead: "fails the readiness check" },
  { pattern: /\bmend(s|ed|ing)?\b/i, instead: "fix" },
  { pattern: /\bheed(s|ed|ing)?\b/i, instead: "honour, apply" },
  {
    // Space for more: "has room for", "make room", `let room = …`.
    except:
      /\b(no|more|much|enough|has|had|have|make|makes|is|was|be|with|without|leaves?|for) room\b|\broom (for|in|again)\b|\brooms\.ts\b/gi,
    pattern: /\brooms\b|\b(the|a|each|its|this|other|one) room\b/i,
    instead: "component (logs), module or package (code)",
  },
  {
    except: /\b(from|with|of) the seed\b/gi,
    pattern: /\bthe seed('s)?\b/i,
    instead: "the upstream file, such as kubelet pleg/generic.go",
  },
];

/** Where words are checked. */
const CHECKED =
  "{*.md,{packages,docs,scripts,bench,examples,deploy,proto/nodekeeper}/**/*.{ts,tsx,md,proto,yaml},test/**/*.test.ts}";
// In test/, the names of tests alone.
const TITLE = /^\s*(?:(?:it|test|describe)(?:\.\w+)?|\])\(\s*"|^\s*\]\)\("/;
const SKIPPED =
  /(^|\/)(gen|node_modules|dist|fixtures)\/|^docs\/contributing\/glossary\.md$|^test\/check-words\.test\.ts$|^scripts\/words\.ts$/;

/** The banned words of a text, as "line: …" without the file. */
export function findWords(text: string, words = bannedWords): string[] {
  const problems: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const split = line.replace(/([a-z0-9])([A-Z])/g, "$1 $2");
    for (const { pattern, instead, except } of words) {
      const found = pattern.exec(except ? split.replace(except, " ") : split);
      if (found) problems.push(`${index + 1}: "${found[0]}": write ${instead}`);
    }
  }
  return problems;
}

/** The glossary's banned words in the repository at `root`, one line each: "docs/a.md:3: "told": write report …". */
export async function findWordProblems(root: string): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob(CHECKED, { cwd: root })) files.push(file.replaceAll("\\", "/"));
  const problems: string[] = [];
  for (const file of files.filter((one) => !SKIPPED.test(one)).sort()) {
    const text = await readFile(join(root, file), "utf8");
    const found = findWords(file.startsWith("test/") ? titlesOf(text) : text);
    problems.push(...found.map((problem) => `${file}:${problem}`));
  }
  return problems;
}

// With the other lines empty, so that the numbers of lines stay.
function titlesOf(text: string): string {
  return text
    .split("\n")
    .map((line) => (TITLE.test(line) ? line : ""))
    .join("\n");
}
