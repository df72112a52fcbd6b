/** Reads CSV as RFC 4180 has it, strictly: lines of as many fields as the first, ended by CR LF. */
export function readCsv(text: string): string[][] {
  const lines: string[][] = [];
  const fields = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y;
  let line: string[] = [];
  while (fields.lastIndex < text.length) {
    const at = fields.lastIndex;
    const [, quoted, plain = "", end] = fields.exec(text) ?? [];
    if (end === undefined) throw new Error(`no CSV at ${JSON.stringify(text.slice(at, at + 80))}`);
    line.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === ",") continue;
    lines.push(line);
    line = [];
  }
  const widths = new Set(lines.map(({ length }) => length));
  if (widths.size > 1) throw new Error(`lines of ${[...widths].join(" and ")} fields`);
  return lines;
}
