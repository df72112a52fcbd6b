import { shown } from "../text.ts";

// Characters that begin markup within a line. "_" begins none within a word, so "shared_cores" is not escaped. On
// GitHub, one "~" strikes text through, as two do.
const MARKUP = /[\\`*[<|~]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)/g;
const LONGEST = 1_000;

/** Escapes a text from a plugin, a pod or the agent for one line of Markdown, in which it must have no effect. */
export function markdownText(text: string): string {
  return shown(text, LONGEST).replace(MARKUP, "\\$&");
}

/** Returns a Markdown table, GitHub's extension. Its cells are escaped. */
export function markdownTable(
  columns: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    line(columns),
    line(columns.map(() => "---")),
    ...rows.map((cells) => line(cells.map((cell) => markdownText(String(cell))))),
  ];
}

/** Returns the Markdown of an explanation: its parts as paragraphs, then its permalink. */
export function markdownOf(title: string, parts: readonly (readonly string[])[], link: string): string {
  const blocks = [[`### ${title}`], ...parts, [`[Permalink](<${link}>)`]];
  return `${blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}
