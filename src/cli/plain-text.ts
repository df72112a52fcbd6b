// Everything that moves a cursor or changes what a terminal does: C0, DEL, C1; and what can't be seen or turns text around.
const unprintable =
  "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff";
const inText = new RegExp(`[${unprintable}]`, "g");

/** Text of others, such as a plugin's reason, as one line that does nothing to a terminal. At most `longest` characters. */
export function plainText(text: string, longest = 300): string {
  const line = text.slice(0, longest + 1).replace(inText, " ");
  return line.length <= longest ? line : `${line.slice(0, longest - 3)}...`;
}

/** JSON of the same value whose texts do nothing to a terminal either: what JSON itself leaves is escaped as well. */
export function plainJson(value: unknown, indent = 0): string {
  // Line breaks between fields are JSON's own; those in texts it escapes itself.
  return JSON.stringify(value, null, indent).replace(inText, (character) =>
    character === "\n" ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
