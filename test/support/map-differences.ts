/** Returns a line for each key whose value is not what is expected, keys of either map included. */
export function mapDifferences(
  what: string,
  expected: Readonly<Record<string, string>>,
  actual: Readonly<Record<string, string>>,
): string[] {
  return [...new Set([...Object.keys(expected), ...Object.keys(actual)])]
    .filter((key) => expected[key] !== actual[key])
    .map((key) => `${what} ${key}: ${actual[key] ?? "nothing"} instead of ${expected[key] ?? "nothing"}`);
}
