// The site's pages are those that docs/index.md lists: its sections are the groups of the sidebar.
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { lexer, type Tokens } from "marked";
import { plainText, readMarkdown } from "./markdown.ts";

/** Where the list is. */
export const INDEX = "docs/index.md";

export interface ListedPage {
  title: string;
  /** From the repository's directory: "docs/install.md". */
  path: string;
}

export interface PageGroup {
  title: string;
  pages: ListedPage[];
}

/** The groups of `index`, the text of docs/index.md: "## title", then a list that starts each item with a link. */
export function groupsOf(index: string): PageGroup[] {
  const groups: PageGroup[] = [];
  for (const token of lexer(index)) {
    if (token.type === "heading" && token.depth === 2) groups.push({ title: plainText(token), pages: [] });
    if (token.type !== "list") continue;
    for (const { tokens } of (token as Tokens.List).items) {
      const link = (tokens[0] as Tokens.Text | undefined)?.tokens?.[0];
      if (link?.type !== "link" || !link.href.endsWith(".md")) continue;
      groups.at(-1)?.pages.push({ title: plainText(link), path: join("docs", link.href) });
    }
  }
  return groups;
}

/** Every Markdown file of the repository at `root`, by its path. */
export async function markdownFiles(root: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const skipped = /(^|\/)(node_modules|dist|fixtures)\//;
  for await (const path of glob("{*.md,{docs,packages,examples,deploy,bench,test}/**/*.md}", { cwd: root })) {
    if (!skipped.test(path)) files.set(path, await readFile(join(root, path), "utf8"));
  }
  return new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Pages of docs/ that docs/index.md does not list, or lists twice. */
export function listProblems(files: ReadonlyMap<string, string>): string[] {
  const listed = groupsOf(files.get(INDEX) ?? "").flatMap(({ pages }) => pages.map(({ path }) => path));
  const twice = listed.filter((path, at) => listed.indexOf(path) !== at);
  const missing = [...files.keys()].filter(
    (path) => path.startsWith("docs/") && path !== INDEX && !listed.includes(path),
  );
  return [
    ...missing.map((path) => `${path}: not listed in ${INDEX}`),
    ...twice.map((path) => `${INDEX}: lists ${path} twice`),
    ...[...files].flatMap(([path, text]) => (readMarkdown(text).title ? [] : [`${path}: has no heading`])),
  ];
}
