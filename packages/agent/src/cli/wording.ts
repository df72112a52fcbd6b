import { plainText } from "@nodekeeper/api/text";

/** Formats a line of a page: a label, and a text that may come from a plugin. */
export function labelled(label: string, text: string): string {
  return `  ${label.padEnd(10)} ${plainText(text, 500)}\n`;
}
