import { acceptedDifferences } from "../test/e2e/katalyst/differences.ts";
import { tableOf, withTable } from "./docs/tables.ts";

/**
 * docs/migrating-from-katalyst.md with the table of differences between the rounds of katalyst's eviction manager and of
 * this agent's. The end-to-end suite shows each of them. Throws if the page has no such table.
 */
export function migrationPage(page: string): string {
  const rows = acceptedDifferences.map(({ katalyst, nodekeeper, why, until }) => [
    `${katalyst}${until ? ` (before ${until})` : ""}`,
    nodekeeper,
    why,
  ]);
  return withTable(page, tableOf(["katalyst", "Nodekeeper", "why"], rows));
}
