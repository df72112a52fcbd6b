import { completed, StepMeter, type Steps } from "@nodekeeper/core/lib";

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

/**
 * A parsed number, or its text if a double would round it. Throws an Error for a number outside the range of a double.
 * @param source its text
 */
export function exactNumber(value: number, source: string): Json {
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
// Exceeds the members of every API type. The members of one object are sorted in one step.
const MAX_MEMBERS = 20_000;
// Values processed in one step of work on a report, which takes well below a millisecond.
const VALUES_IN_STEP = 1_000;

/** A meter for the steps of work on one report. */
export function reportMeter(): StepMeter {
  return new StepMeter(VALUES_IN_STEP);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawJSON(value);
}

/** The JSON type of a value, for messages. */
export function typeName(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return isRawJSON(value) ? "number" : typeof value;
}

/** Runs `normalizing` to completion. */
export function normalize(value: Json): Json {
  return completed(normalizing(value, reportMeter()));
}

/** The path of a value, as a linked list from the innermost key. */
export interface Place {
  key: string | number;
  within: Place | undefined;
}

/**
 * A copy with sorted keys and without null members, so that equal contents serialize equally. Throws an Error with the
 * path of a `__proto__` key, of a value nested deeper than 64 levels, or of an object with more than 20,000 members.
 */
export function* normalizing(value: Json, meter: StepMeter, place?: Place, depth = 0): Steps<Json> {
  checkDepth(depth, place);
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (let at = 0; at < value.length; at++) {
      if (meter.spend()) yield;
      const item = value[at]!;
      items.push(
        isContainer(item) ? yield* normalizing(item, meter, { key: at, within: place }, depth + 1) : item,
      );
    }
    return items;
  }
  if (!isObject(value)) return value;
  const keys = Object.keys(value);
  checkMembers(keys.length, place);
  const sorted: JsonObject = {};
  for (const key of keys.sort()) {
    if (key === "__proto__") throw new Error(`key "__proto__" at ${pathOf(place) || "the top"}`);
    if (meter.spend()) yield;
    const member = value[key];
    if (member === null || member === undefined) continue;
    sorted[key] = isContainer(member)
      ? yield* normalizing(member, meter, { key, within: place }, depth + 1)
      : member;
  }
  return sorted;
}

/** Throws an Error for a value nested deeper than 64 levels; `depth` 0 is the outermost. */
export function checkDepth(depth: number, place: Place | undefined): void {
  if (depth > MAX_DEPTH)
    throw new Error(`nested deeper than ${MAX_DEPTH} levels at ${pathOf(place).slice(0, 200) || "the top"}`);
}

/** Throws an Error for an object with more than 20,000 members. */
export function checkMembers(count: number, place: Place | undefined): void {
  if (count > MAX_MEMBERS)
    throw new Error(`more than ${MAX_MEMBERS} members at ${pathOf(place).slice(0, 200) || "the top"}`);
}

/** Whether a value is an object or a list. */
export function isContainer(value: Json): value is Json[] | JsonObject {
  return typeof value === "object" && value !== null && !isRawJSON(value);
}

function pathOf(place: Place | undefined): string {
  if (!place) return "";
  const path = pathOf(place.within);
  if (typeof place.key === "number") return `${path}[${place.key}]`;
  return path === "" ? place.key : `${path}.${place.key}`;
}

/** Whether two normalized values are equal. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined || typeof a !== typeof b) return false;
  if (typeof a !== "object") return false;
  return JSON.stringify(a) === JSON.stringify(b);
}
