/**
 * A number kept as text, which JSON.stringify writes verbatim. Used for numbers that a double cannot represent. See
 * https://github.com/tc39/proposal-json-parse-with-source
 */
export interface RawNumber {
  readonly rawJSON: string;
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

// Not yet in TypeScript's library types.
const json = JSON as unknown as {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
};

/** Returns the RawNumber of a text. Throws a SyntaxError unless the text is a JSON primitive. */
export function rawNumber(text: string): RawNumber {
  return json.rawJSON(text);
}

export function isRawNumber(value: unknown): value is RawNumber {
  return json.isRawJSON(value);
}

// JSON that does not match contains no number that a double would round. Identifiers in strings, such as UIDs, rarely
// match.
const mayBeInexact = /(?:^|[[:,\s])-?(?:\d{16}|\d[\d.]*[eE])/;

/**
 * Parses JSON without rounding integers: those that a double cannot represent become RawNumbers. Throws a SyntaxError
 * if the JSON is invalid, and an Error if a number is outside the range of a double, which JSON.stringify would write
 * as null.
 */
export function parseExactly(text: string): unknown {
  return parseNumbers(text, exactNumber);
}

/**
 * Like `parseExactly`, but integers beyond 2^53 become bigints and numbers outside the range of a double become
 * infinite.
 */
export function parseWithBigInts(text: string): unknown {
  return parseNumbers(text, (value, source) =>
    isInteger.test(source) && !Number.isSafeInteger(value) ? BigInt(source) : value,
  );
}

// A reviver makes parsing about six times slower, so it is used only if a number may need it.
function parseNumbers(text: string, read: (value: number, source: string) => unknown): unknown {
  if (!mayBeInexact.test(text)) return JSON.parse(text);
  return json.parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined ? read(value, source) : value,
  );
}

const isInteger = /^-?\d+$/;

function exactNumber(value: number, source: string): number | RawNumber {
  if (!Number.isFinite(value)) throw new Error(`number ${source.slice(0, 40)} is too large`);
  if (!isInteger.test(source) || Number.isSafeInteger(value) || BigInt(source) === BigInt(value))
    return value;
  return rawNumber(source);
}

/**
 * Returns the JSON with each object that is the value of `key` replaced by a string that contains the object's exact
 * text. Parsing would change the format of numbers, the order of numeric keys, duplicate keys and escapes.
 * @param text if it is not valid JSON, the result is not valid either
 * @param key only letters
 */
export function withObjectsAsText(text: string, key: string): string {
  // An unescaped quote after a brace or a comma starts a key or an item, so this does not match inside strings.
  const member = new RegExp(`[{,]\\s*"${key}"\\s*:\\s*(?=\\{)`, "g");
  let result = "";
  let copiedTo = 0;
  for (let found = member.exec(text); found; found = member.exec(text)) {
    const start = member.lastIndex;
    const end = endOfObject(text, start);
    if (end === undefined) return text;
    result += text.slice(copiedTo, start) + JSON.stringify(text.slice(start, end));
    copiedTo = end;
    member.lastIndex = end;
  }
  return copiedTo === 0 ? text : result + text.slice(copiedTo);
}

/** Returns the position after the object that starts at `start`; undefined if the object does not end. */
function endOfObject(text: string, start: number): number | undefined {
  const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}]/g;
  token.lastIndex = start;
  let depth = 0;
  for (let found = token.exec(text); found; found = token.exec(text)) {
    if (found[0] === "{") depth++;
    else if (found[0] === "}" && --depth === 0) return token.lastIndex;
  }
  return undefined;
}
