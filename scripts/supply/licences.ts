/** Licences of what is shipped: they ask for their text and a notice, which THIRD-PARTY-NOTICES.txt has. */
export const shippable: readonly string[] = [
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
];
/** Licences of tools too, of which nothing is shipped. */
export const usable: readonly string[] = [...shippable, "EPL-2.0", "MPL-2.0"];

/**
 * Whether an SPDX expression of AND and OR, without nested parentheses, is met by licences of a list; "(MIT OR X) AND Y" is
 * not understood, and is not allowed.
 */
export function isAllowed(expression: string, list: readonly string[]): boolean {
  const flat = expression.replace(/^\(([^()]*)\)$/, "$1");
  return flat.split(" OR ").some((choice) => choice.split(" AND ").every((name) => list.includes(name)));
}
