import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ProblemGroup, problemGroups } from "@nodekeeper/api/errors";
import { withSections } from "./docs/tables.ts";

/** docs/errors.md with a section for each of `groups`. */
export function errorsPage(page: string, groups: readonly ProblemGroup[] = problemGroups): string {
  const sections = groups.map(({ title, problems }) => {
    const texts = Object.values(problems)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map(({ id, title, cause, remedy }) => `### ${id}\n\n**${title}.** ${cause}\n\nRemedy: ${remedy}\n`);
    return `## ${title}\n\n${texts.join("\n")}`;
  });
  return withSections(page, sections);
}

/** The problems with ids in the repository at `root`, one line each. */
export async function findErrorProblems(root: string): Promise<string[]> {
  const files = new Map<string, string>();
  for await (const file of glob("{packages/*/src/**/*.{ts,tsx},docs/**/*.md,README.md}", { cwd: root })) {
    if (!/\.test\.tsx?$|\/testing\/|\/api\/src\/errors\//.test(file))
      files.set(file, await readFile(join(root, file), "utf8"));
  }
  return errorProblemsIn(problemGroups, files);
}

/**
 * The same for `groups` and the texts of `files` by path. An id has four digits and one declaration. Files mention only
 * declared ids, and code refers to each declaration by its name alone.
 */
export function errorProblemsIn(
  groups: readonly ProblemGroup[],
  files: ReadonlyMap<string, string>,
): string[] {
  const declared = groups.flatMap(({ problems }) => Object.entries(problems));
  const ids = declared.map(([, { id }]) => id);
  const known = new Set<string>(ids);
  const problems = ids.flatMap((id, at) => [
    ...(/^NK\d{4}$/.test(id) ? [] : [`${id}: expected NK and four digits`]),
    ...(ids.indexOf(id) === at ? [] : [`${id}: declared more than once`]),
  ]);
  const words = new Set<string>();
  for (const [file, text] of files) {
    for (const [id] of text.matchAll(/\bNK\d+\b/g))
      if (!known.has(id)) problems.push(`${file}: ${id} is not declared in packages/api/src/errors`);
    if (!/\.tsx?$/.test(file)) continue;
    for (const [, id] of text.matchAll(/"(NK\d+)"/g))
      problems.push(`${file}: "${id}" is written out, import its declaration`);
    for (const [word] of text.matchAll(/\w+/g)) words.add(word);
  }
  const unused = declared.filter(([name]) => !words.has(name));
  return [...problems, ...unused.map(([name, { id }]) => `${id}: no code uses ${name}`)];
}
