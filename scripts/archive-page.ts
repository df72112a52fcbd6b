import { attributeTexts } from "../packages/agent/src/archive/records/attributes.ts";
import { events } from "../packages/api/src/archive/index.ts";
import { tableOf, withTable } from "./docs/tables.ts";

/** docs/archive.md with the tables of events and attributes. Throws if the page has no such tables. */
export function archivePage(page: string): string {
  const rowsOf = (texts: Readonly<Record<string, string>>) =>
    Object.entries(texts).map(([name, text]) => [`\`${name}\``, text]);
  const withEvents = withTable(page, tableOf(["event", "meaning"], rowsOf(events)));
  return withTable(withEvents, tableOf(["attribute", "meaning"], rowsOf(attributeTexts)));
}
