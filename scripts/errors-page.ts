// docs/errors.md, and whether code and catalogue of errors agree.
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type ErrorGroup, errorGroups } from "../packages/agent/src/cli/error-catalogue/index.ts";

/** Where the page is. */
export const ERRORS_PAGE = "docs/errors.md";

const head = `# Errors

<!-- Generated from packages/agent/src/cli/error-catalogue by "npm run generate". -->

Errors that an operator can act on have an id such as \`NK1301\`. It stays the same between versions. Where it appears:

- commands print it before the message, with cause and remedy below;
- the log has it as \`errorId\` in each line about the error;
- \`/readyz?verbose\` has it in brackets after the message of a check that fails or warns;
- the JSON API has it as \`id\` of an error, and as \`errorId\` of a plugin in \`/api/v1/plugins\`.
`;

/** The page that describes `groups`. */
export function errorsPage(groups: readonly ErrorGroup[] = errorGroups): string {
  const sections = groups.map(({ title, entries }) => {
    const texts = Object.entries(entries).map(
      ([id, entry]) => `### ${id}\n\n**${entry.title}.** ${entry.cause}\n\nRemedy: ${entry.remedy}\n`,
    );
    return `\n## ${title}\n\n${texts.join("\n")}`;
  });
  return head + sections.join("");
}

/** What is wrong with the ids in the repository at `root`, one line each. */
export async function findErrorProblems(root: string): Promise<string[]> {
  const files = new Map<string, string>();
  for await (const file of glob("{packages/*/src/**/*.ts,docs/**/*.md,README.md}", { cwd: root })) {
    if (!/\.test\.ts$|\/testing\//.test(file)) files.set(file, await readFile(join(root, file), "utf8"));
  }
  return errorProblemsIn(errorGroups, files);
}

/**
 * The same for a catalogue and the texts of `files` by path. Ids are of four digits, each once and in order; each that a
 * file mentions is in the catalogue, and code attaches each of the catalogue to something.
 */
export function errorProblemsIn(groups: readonly ErrorGroup[], files: ReadonlyMap<string, string>): string[] {
  const ids = groups.flatMap(({ entries }) => Object.keys(entries));
  const known = new Set(ids);
  const used = new Set<string>();
  const problems: string[] = [];
  for (const [at, id] of ids.entries()) {
    if (!/^NK\d{4}$/.test(id)) problems.push(`${id}: expected NK and four digits`);
    if (at > 0 && ids[at - 1]! >= id) problems.push(`${id}: expected above ${ids[at - 1]}, ids are sorted`);
  }
  for (const [file, text] of files) {
    for (const [id] of text.matchAll(/\bNK\d+\b/g)) {
      if (!known.has(id)) problems.push(`${file}: ${id} is not in the catalogue of errors`);
    }
    if (!file.endsWith(".ts") || file.includes("/error-catalogue/")) continue;
    for (const [, id] of text.matchAll(/"(NK\d+)"/g)) used.add(id!);
  }
  return [...problems, ...ids.filter((id) => !used.has(id)).map((id) => `${id}: no code attaches it`)];
}
