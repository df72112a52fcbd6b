// Everything that moves a cursor or changes what a terminal does: C0, DEL, C1, and the marks that turn text around.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Text of others, such as a plugin's reason, as one line that does nothing to a terminal. At most `longest` characters. */
export function plainText(text: string, longest = 300): string {
  const line = text.replace(unprintable, " ");
  return line.length <= longest ? line : `${line.slice(0, longest - 3)}...`;
}
