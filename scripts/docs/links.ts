// Links between pages, and mentions of pages in code: each leads to a file and an anchor that exist.
import { glob, readFile, stat } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { type MarkdownPage, readMarkdown } from "./markdown.ts";
import { listProblems, markdownFiles } from "./pages.ts";

// A page named in a message, a comment, a chart: "docs/operating.md#health".
const MENTION = /(?<![\w/.-])docs\/[\w/-]+\.md(?:#[\w-]+)?/g;
const SOURCES = "{packages,deploy,examples,proto/nodekeeper}/**/*.{ts,tsx,js,mjs,yaml,proto,go,py,txt}";
const SKIPPED = /(^|\/)(node_modules|dist|gen|fixtures)\/|\.test\.ts$/;

/** Problems of the documentation of the repository at `root`, one line each: unlisted pages, dead links. */
export async function findDocsProblems(root: string): Promise<string[]> {
  const files = await markdownFiles(root);
  return [...listProblems(files), ...(await findDeadLinks(root, files))];
}

/** Dead links of `files`, the Markdown of the repository at `root`, and dead mentions in its sources. */
async function findDeadLinks(root: string, files: ReadonlyMap<string, string>): Promise<string[]> {
  const pages = new Map([...files].map(([path, text]) => [path, readMarkdown(text)]));
  const problems: string[] = [];
  for (const [path, { links }] of pages) {
    for (const { target, line } of links) {
      const problem = await deadLink(root, pages, path, target);
      if (problem) problems.push(`${path}:${line}: ${problem}`);
    }
  }
  for await (const path of glob(SOURCES, { cwd: root })) {
    if (SKIPPED.test(path)) continue;
    const text = await readFile(join(root, path), "utf8");
    for (const { 0: mention, index } of text.matchAll(MENTION)) {
      const problem = await deadLink(root, pages, "", mention);
      if (problem) problems.push(`${path}:${text.slice(0, index).split("\n").length}: ${problem}`);
    }
  }
  return problems;
}

/** @param from the path of the file with the link; "" for a mention, which is relative to the root */
async function deadLink(
  root: string,
  pages: ReadonlyMap<string, MarkdownPage>,
  from: string,
  target: string,
): Promise<string | undefined> {
  if (/^[a-z][a-z+.-]*:/i.test(target)) return undefined;
  const [file, anchor] = target.split("#", 2) as [string, string?];
  const path = file === "" ? from : normalize(join(dirname(from), decodeURI(file)));
  if (path.startsWith("..")) return `${target} leads out of the repository`;
  const isThere = await stat(join(root, path)).then(
    () => true,
    () => false,
  );
  if (!isThere) return `${target}: there is no ${path}`;
  if (!anchor) return undefined;
  const page = pages.get(path);
  return page?.headings.some(({ id }) => id === anchor)
    ? undefined
    : `${target}: ${path} has no heading #${anchor}`;
}
