import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");

/**
 * A program in the documentation: a code block after a paragraph that mentions its file in backquotes, such as
 * `fan-reporter.mts`. If the paragraph mentions several files, the last one counts.
 */
export interface DocSnippet {
  /** Path of the page from the repository's root. */
  page: string;
  /** Such as "fan-reporter.mts". */
  file: string;
  code: string;
}

/** Returns all TypeScript and JavaScript code blocks of a page. Throws if the paragraph before one names no file. */
export function snippetsOf(page: string): DocSnippet[] {
  const text = readFileSync(join(root, page), "utf8");
  const blocks = [...text.matchAll(/([^\n]*(?:\n[^\n]+)*)\n\n```[jt]s\n([\s\S]*?)```/g)];
  const found = [...text.matchAll(/^```(?:ts|js|typescript|javascript)$/gm)].length;
  if (found !== blocks.length)
    throw new Error(`${page}: ${found} blocks, ${blocks.length} after a paragraph`);
  return blocks.map(([, before = "", code = ""]) => {
    const file = [...before.matchAll(/`(\w[\w.-]*\.m[jt]s)`/g)].at(-1)?.[1];
    if (!file) throw new Error(`${page}: no file's name in the line before ${code.slice(0, 80)}`);
    return { page, file, code };
  });
}
