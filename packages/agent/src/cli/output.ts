import { styleText } from "node:util";
import { plainJson, plainLines, plainText, plainYaml } from "@nodekeeper/api/text";

/** Where a command writes its output. */
export interface Output {
  write(text: string): void;
  /** Whether to use colors and a live line. */
  readonly isTerminal: boolean;
  /** Width of the terminal in columns. */
  readonly columns: number;
}

/** Standard output of this process. `styleText` observes NO_COLOR. */
export const standardOutput: Output = {
  write: (text) => void process.stdout.write(text),
  get isTerminal() {
    return process.stdout.isTTY === true;
  },
  get columns() {
    return process.stdout.columns ?? 120;
  },
};

const MAX_CELL_LENGTH = 1_000;

export type Colour = "green" | "red" | "yellow" | "dim" | "bold" | "cyan";

/** Colors text on a terminal. Returns it unchanged elsewhere. */
export function paint(output: Output, colour: Colour, text: string): string {
  return output.isTerminal ? styleText(colour, text) : text;
}

/** Output formats of pages of text, and of tables. */
export const pageFormats = ["text", "json", "yaml"] as const;
export const tableFormats = ["table", "wide", "json", "yaml"] as const;
export type PageFormat = (typeof pageFormats)[number];
export type TableFormat = (typeof tableFormats)[number];

/** Prints a value as multi-line JSON, or as a YAML document. */
export function printValue(output: Output, format: "json" | "yaml", value: unknown): void {
  if (format === "json") printJson(output, value, 2);
  else output.write(plainYaml(value));
}

/** Prints a value as JSON or YAML, or as the page of text that `pageOf` returns. */
export function printAs(
  output: Output,
  format: PageFormat | TableFormat,
  value: unknown,
  pageOf: () => string,
): void {
  if (format === "json" || format === "yaml") printValue(output, format, value);
  else output.write(pageOf());
}

/** Prints one of several values: as a line of JSON, or as a document of a YAML stream. */
export function printItem(output: Output, format: "json" | "yaml", value: unknown): void {
  if (format === "json") printJson(output, value);
  else output.write(`---\n${plainYaml(value)}`);
}

/** Prints a value as JSON followed by a newline, indented by `indent` spaces, or on one line if `indent` is 0. */
export function printJson(output: Output, value: unknown, indent = 0): void {
  output.write(`${plainJson(value, indent)}\n`);
}

/** Prints a message to standard error. Continuation lines are indented, so that none looks like a separate message. */
export function printMessage(message: string): void {
  process.stderr.write(`nodekeeper: ${plainLines(message).replaceAll(/\n(?! )/g, "\n  ")}\n`);
}

/**
 * Formats rows under headings in aligned columns, as kubectl does. Cells are escaped. `colourOf` colors whole cells.
 */
export function table(
  output: Output,
  headings: readonly string[],
  cells: readonly (readonly string[])[],
  colourOf: (row: number, column: number) => Colour | undefined = () => undefined,
): string {
  const rows = cells.map((row) => row.map((cell) => plainText(cell, MAX_CELL_LENGTH)));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const pad = (text: string, column: number) =>
    column === headings.length - 1 ? text : text.padEnd(widths[column]! + 3);
  const lines = [headings.map((heading, column) => paint(output, "bold", pad(heading, column))).join("")];
  for (const [at, row] of rows.entries()) {
    const painted = row.map((cell, column) => {
      const colour = colourOf(at, column);
      return colour ? paint(output, colour, pad(cell, column)) : pad(cell, column);
    });
    lines.push(painted.join(""));
  }
  return `${lines.join("\n")}\n`;
}

/** Formats a dimmed line between rows of output. */
export function dimLine(output: Output, text: string): string {
  return `${paint(output, "dim", text)}\n`;
}
