// Control characters (C0, DEL, C1), invisible characters and bidirectional overrides.
const characters =
  "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\u{e0000}-\\u{e007f}";
const unprintable = new RegExp(`[${characters}]`, "gu");
const named: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * Makes text from another program, such as a plugin's reason or a pod's name, safe for a terminal: one line, control
 * characters escaped as in JSON, truncated to `longest` characters.
 */
export function plainText(text: string, longest = 300): string {
  const line = text.slice(0, longest + 1).replace(unprintable, escaped);
  return line.length <= longest ? line : `${line.slice(0, longest - 3)}...`;
}

/** Like `plainText`, but keeps line breaks and does not truncate. */
export function plainLines(text: string): string {
  return text
    .split("\n")
    .map((line) => line.replace(unprintable, escaped))
    .join("\n");
}

// Opaque positions, which clients send back unchanged.
const opaque: ReadonlySet<string> = new Set(["continue", "cursor"]);

/** Returns a copy of a JSON value with every string and key escaped as by `plainText`, but not truncated. */
export function plainTexts<T>(value: T): T {
  return plainValue(value) as T;
}

function plainValue(value: unknown): unknown {
  if (typeof value === "string") return value.replace(unprintable, escaped);
  if (Array.isArray(value)) return value.map(plainValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replace(unprintable, escaped),
      opaque.has(name) ? member : plainValue(member),
    ]),
  );
}

/** Serializes a value as JSON. Also escapes control characters that JSON permits, such as C1 and bidi. */
export function plainJson(value: unknown, indent = 0): string {
  // Newlines occur only between fields; JSON escapes those in strings.
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
