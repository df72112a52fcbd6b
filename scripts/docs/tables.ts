/** A Markdown table. A "|" in a cell is escaped. */
export function tableOf(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const body = rows.map((cells) => line(cells.map((cell) => cell.replaceAll("|", "\\|"))));
  return [line(header), `|${"---|".repeat(header.length)}`, ...body].join("\n");
}

/** `page` with the table of the same header replaced. Throws if it has none. */
export function withTable(page: string, table: string): string {
  const [header = ""] = table.split("\n", 1);
  const start = `\n${page}`.indexOf(`\n${header}\n`);
  if (start < 0) throw new Error(`there is no table "${header}" to replace`);
  const end = page.indexOf("\n\n", start);
  return page.slice(0, start) + table + (end < 0 ? "\n" : page.slice(end));
}

/** `page` with everything from its first section on replaced; what is above is written by hand. */
export function withSections(page: string, sections: readonly string[]): string {
  const [head] = page.split(/^(?=## )/m, 1);
  return head + sections.join("\n");
}
