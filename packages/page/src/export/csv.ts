import type { Row, Value } from "./exports.ts";

// Spreadsheets take a cell that begins with one of these for a formula, also in full width:
// https://owasp.org/www-community/attacks/CSV_Injection
const FORMULA = /^\s*[=+\-@＝＋－＠\t\r\n]/;

/**
 * Returns rows as CSV (RFC 4180) with a header. Texts are always quoted. A text that a spreadsheet would interpret as a
 * formula is prefixed with an apostrophe.
 */
export function csvOf(rows: readonly Row[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  if (columns.length === 0) return "";
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column] ?? null))];
  return lines.map((values) => `${values.map(fieldOf).join(",")}\r\n`).join("");
}

function fieldOf(value: Value): string {
  if (value === null) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : value.join("; ");
  return `"${FORMULA.test(text) ? "'" : ""}${text.replaceAll('"', '""')}"`;
}
