// Whether a command prints what a page shows.

/** What differs between two runs of a command. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME"],
  // Of a file.
  [/\b[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d\b/g, "TIME"],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "UID"],
  [/\b[0-9a-f]{12}\b/g, "ID"],
  [/[+-]?\b\d+(?:\.\d+)? ?(?:ms|s|m|h|d)\b/g, "AGE"],
  [/\b\d+(?:\.\d+)?[KMGT]i\b/g, "SIZE"],
  [/\b\d+%/g, "SHARE"],
  // Columns are as wide as their longest value.
  [/ +/g, " "],
];

/**
 * Returns whether `printed` is what the page shows. Times, ages, sizes, percentages and IDs may differ. A line `...` of
 * the page matches any number of lines.
 */
export function isAsShown(shown: string, printed: string): boolean {
  const lines = shapeOf(shown).split("\n");
  const pattern = lines.map((line) => (line === "..." ? "(?:.*\\n)*?" : `${escaped(line)}\\n`));
  return new RegExp(`^${pattern.join("")}$`).test(`${shapeOf(printed)}\n`);
}

function shapeOf(text: string): string {
  return VARYING.reduce((all, [varying, name]) => all.replace(varying, name), text.trimEnd());
}

function escaped(text: string): string {
  return text.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&");
}
