// Control characters (C0, DEL, C1), invisible characters and bidirectional overrides.
const characters =
  "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\u{e0000}-\\u{e007f}";
const unprintable = new RegExp(`[${characters}]`, "gu");
const named: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * Makes text of another program, such as a plugin's reason or a pod's name, safe for a terminal: one line, control
 * characters escaped as in JSON, truncated to `longest` characters.
 */
export function plainText(text: string, longest = 300): string {
  const line = text.slice(0, longest + 1).replace(unprintable, escaped);
  return line.length <= longest ? line : `${line.slice(0, longest - 3)}...`;
}

/** The same for a text of several lines, not truncated. */
export function plainLines(text: string): string {
  return text
    .split("\n")
    .map((line) => plainText(line, Number.POSITIVE_INFINITY))
    .join("\n");
}

/** Serializes a value as JSON in which control characters that JSON permits, such as C1 and bidi, are escaped too. */
export function plainJson(value: unknown, indent = 0): string {
  // Line breaks occur only between fields; JSON escapes those within strings.
  return JSON.stringify(value, null, indent).replace(unprintable, (character) =>
    character === "\n" ? character : unicodeEscaped(character),
  );
}

function escaped(character: string): string {
  return named[character] ?? unicodeEscaped(character);
}

// By UTF-16 code unit, as in JSON.
function unicodeEscaped(character: string): string {
  return [...Array(character.length).keys()]
    .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
    .join("");
}
