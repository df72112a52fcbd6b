import { shown } from "../../text.ts";

const LONGEST = 4_000;

// Not yet in TypeScript's library types, nor in every browser. Without it, integers beyond 2^53 are rounded.
const { parse, rawJSON } = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context?: { source?: string }) => unknown,
  ): unknown;
  rawJSON?(text: string): unknown;
};

/**
 * Formats a message for display: JSON with one line per member; any other text, such as truncated JSON, unchanged.
 * Escaped.
 */
export function messageText(text: string): string {
  return indented(text)
    .split("\n")
    .map((line) => shown(line, LONGEST))
    .join("\n");
}

function indented(text: string): string {
  try {
    return JSON.stringify(parse(text, numberAsWritten), null, 2);
  } catch {
    return text;
  }
}

function numberAsWritten(_: string, value: unknown, context?: { source?: string }): unknown {
  const source = typeof value === "number" ? context?.source : undefined;
  return source === undefined || !rawJSON ? value : rawJSON(source);
}
