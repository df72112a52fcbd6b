import { shown } from "../../text.ts";

const LONGEST = 4_000;

/** A message to be read: JSON with a line for each member, and any other text, such as JSON that was cut, as it is. Escaped. */
export function messageText(text: string): string {
  return indented(text)
    .split("\n")
    .map((line) => shown(line, LONGEST))
    .join("\n");
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
