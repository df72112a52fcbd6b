// docs/migrating-from-katalyst.md: the table of differences between the rounds of katalyst's eviction manager and of this
// agent's, of which the end-to-end suite shows each.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { acceptedDifferences } from "../test/e2e/katalyst/differences.ts";
import { root } from "./run-command.ts";

/** Where the page is. */
export const MIGRATION_PAGE = "docs/migrating-from-katalyst.md";

const BEGIN = '<!-- Generated from test/e2e/katalyst/differences.ts by "npm run generate". -->';
const END = "<!-- End of the generated table. -->";

/** The page with the table. Throws if the page lacks the comments between which it is. */
export async function migrationPage(): Promise<string> {
  const page = await readFile(join(root, MIGRATION_PAGE), "utf8");
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin)
    throw new Error(`${MIGRATION_PAGE} has no place for the table of differences`);
  return `${page.slice(0, begin + BEGIN.length)}\n\n${table()}\n\n${page.slice(end)}`;
}

function table(): string {
  const rows = acceptedDifferences.map(({ katalyst, nodekeeper, why, until }) => {
    const versions = until ? ` (before ${until})` : "";
    return `| ${katalyst}${versions} | ${nodekeeper} | ${why} |`;
  });
  return ["| katalyst | Nodekeeper | why |", "|---|---|---|", ...rows].join("\n");
}
