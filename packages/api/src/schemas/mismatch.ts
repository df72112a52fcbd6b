import type { JsonSchema } from "./schema.ts";

interface Keywords {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
}

/**
 * Returns why a JSON value is not an object of the schema: "uid is missing or wrong". Undefined if it is one. Checks
 * types, words, required members, and ranges of times; other members are ignored.
 */
export function mismatchOf(schema: JsonSchema, value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "it is not an object";
  const { properties = {}, required = [] } = schema as Keywords;
  const members = value as Readonly<Record<string, unknown>>;
  const wrong = Object.keys(properties).find((name) =>
    members[name] === undefined ? required.includes(name) : !matches(properties[name]!, members[name]),
  );
  return wrong === undefined ? undefined : `${wrong} is missing or wrong`;
}

/** Returns whether a JSON value is one of the schema, as far as `mismatchOf` checks it. */
export function matches(schema: JsonSchema, value: unknown): boolean {
  const { type, const: constant, enum: words, anyOf, items = {} } = schema as Keywords;
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema as Keywords;
  if (constant !== undefined) return value === constant;
  if (anyOf) return anyOf.some((each) => matches(each, value));
  if (words) return words.includes(value);
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value) && value.every((item) => matches(items, item));
  if (type === "object") return mismatchOf(schema, value) === undefined;
  if (type === "integer") return Number.isSafeInteger(value);
  if (type === "number") return typeof value === "number" && value >= minimum && value <= maximum;
  return type === undefined || typeof value === type;
}
