/** A JSON value. After `normalize`, objects have sorted keys and no null members. */
export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/**
 * A number that a double cannot represent, such as an int64 beyond 2^53: its text, which JSON.stringify emits verbatim.
 * https://github.com/tc39/proposal-json-parse-with-source
 */
interface RawNumber {
  readonly rawJSON: string;
}

// Not yet in TypeScript's library types.
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
};

// JSON that does not match contains no number that a double would round.
const mayBeInexact = /\d{16}|\d[eE]/;

/**
 * Parses JSON without rounding numbers. Throws a SyntaxError for invalid JSON, and an Error for a number outside the
 * range of a double, which JSON.stringify would write as null.
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

/** The text of a number, exact or not; undefined for other values. */
export function numberText(value: Json): string | undefined {
  if (typeof value === "number") return String(value);
  return isRawJSON(value) ? value.rawJSON : undefined;
}

// Exceeds the depth of every API type; bounds the recursion here and in the merge.
const MAX_DEPTH = 64;

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawJSON(value);
}

/** The JSON type of a value, for messages. */
export function typeName(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return isRawJSON(value) ? "number" : typeof value;
}

/**
 * A copy with sorted keys and without null members, so that equal contents serialize equally. Throws an Error with the
 * path of a `__proto__` key or of a value nested deeper than 64 levels.
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

/** Whether two normalized values are equal. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined || typeof a !== typeof b) return false;
  if (typeof a !== "object") return false;
  return JSON.stringify(a) === JSON.stringify(b);
}
