/** A JSON value. Objects have sorted keys and no nulls once they went through `normalize`. */
export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/**
 * A number that a double can't hold, such as an int64 beyond 2^53: its text, which JSON.stringify writes as it is.
 * https://github.com/tc39/proposal-json-parse-with-source
 */
interface RawNumber {
  readonly rawJSON: string;
}

// The types of the language do not have them yet.
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
};

// Text without any of these has no number that a double rounds.
const mayBeInexact = /\d{16}|\d[eE]/;

/**
 * As JSON.parse, with every number kept exactly. Throws a SyntaxError for text that is not JSON, and an Error that names a
 * number beyond what a double reaches, which would become null.
 */
export function parseExactly(text: string): Json {
  if (!mayBeInexact.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value: Json, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined ? exactly(value, context.source) : value,
  );
}

function exactly(value: number, source: string): Json {
  if (!Number.isFinite(value)) throw new Error(`number ${source.slice(0, 40)} is too large`);
  const isInteger = /^-?\d+$/.test(source);
  if (!isInteger || Number.isSafeInteger(value) || BigInt(source) === BigInt(value)) return value;
  return rawJSON(source) as unknown as Json;
}

/** The text of a number, whether a double holds it or not; undefined for any other value. */
export function numberText(value: Json): string | undefined {
  if (typeof value === "number") return String(value);
  return isRawJSON(value) ? value.rawJSON : undefined;
}

// Deeper than any API type; bounds the recursion here and in the merge.
const MAX_DEPTH = 64;

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawJSON(value);
}

/** What a person calls the type of a value. */
export function typeName(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return isRawJSON(value) ? "number" : typeof value;
}

/**
 * A copy with sorted keys and without null members, so that equal contents are equal as text.
 * Throws an Error that names the place of a `__proto__` key or of too deep a nesting.
 */
export function normalize(value: Json, path = "", depth = 0): Json {
  if (depth > MAX_DEPTH) throw new Error(`nested deeper than ${MAX_DEPTH} levels at ${path.slice(0, 200)}`);
  if (Array.isArray(value)) return value.map((item, at) => normalize(item, `${path}[${at}]`, depth + 1));
  if (!isObject(value)) return value;
  const sorted: JsonObject = {};
  for (const key of Object.keys(value).sort()) {
    if (key === "__proto__") throw new Error(`key "__proto__" at ${path || "the top"}`);
    const member = value[key];
    if (member === null || member === undefined) continue;
    sorted[key] = normalize(member, path === "" ? key : `${path}.${key}`, depth + 1);
  }
  return sorted;
}

/** Whether two normalized values are the same. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined || typeof a !== typeof b) return false;
  if (typeof a !== "object") return false;
  return JSON.stringify(a) === JSON.stringify(b);
}
