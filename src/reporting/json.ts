/** A JSON value. Objects have sorted keys and no nulls once they went through `normalize`. */
export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

// Deeper than any API type; bounds the recursion here and in the merge.
const MAX_DEPTH = 64;

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a person calls the type of a value. */
export function typeName(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
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
