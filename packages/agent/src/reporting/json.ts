import { completed, isRawNumber, StepMeter, type Steps } from "@nodekeeper/core/lib";

/**
 * A JSON value. Numbers that a double cannot represent are RawNumbers. After `normalize`, objects have sorted keys and
 * no null members.
 */
export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/** Returns the text of a number, which may be a RawNumber. Undefined for other values. */
export function numberText(value: Json): string | undefined {
  if (typeof value === "number") return String(value);
  return isRawNumber(value) ? value.rawJSON : undefined;
}

// Deeper than any API type. Bounds the recursion here and in the merge.
const MAX_DEPTH = 64;
// More than any API type has. The members of one object are sorted in a single step.
const MAX_MEMBERS = 20_000;
// Number of values processed per step, which takes well below a millisecond.
const VALUES_IN_STEP = 1_000;

/** Returns a meter for the steps of processing one report. */
export function reportMeter(): StepMeter {
  return new StepMeter(VALUES_IN_STEP);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** Returns the JSON type of a value, for messages. */
export function typeName(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return isRawNumber(value) ? "number" : typeof value;
}

/** Runs `normalizing` to completion. */
export function normalize(value: Json): Json {
  return completed(normalizing(value, reportMeter()));
}

/** Path of a value, as a linked list starting at the innermost key. */
export interface Place {
  key: string | number;
  within: Place | undefined;
}

/**
 * Returns a copy with sorted keys and without null members, so that equal contents serialize equally. Throws an Error
 * that names the path for a `__proto__` key, a value nested deeper than 64 levels, or an object with more than 20,000
 * members.
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

/** Throws an Error if a value is nested deeper than 64 levels. The outermost value has depth 0. */
export function checkDepth(depth: number, place: Place | undefined): void {
  if (depth > MAX_DEPTH)
    throw new Error(`nested deeper than ${MAX_DEPTH} levels at ${pathOf(place).slice(0, 200) || "the top"}`);
}

/** Throws an Error if an object has more than 20,000 members. */
export function checkMembers(count: number, place: Place | undefined): void {
  if (count > MAX_MEMBERS)
    throw new Error(`more than ${MAX_MEMBERS} members at ${pathOf(place).slice(0, 200) || "the top"}`);
}

/** Returns whether a value is an object or a list. */
export function isContainer(value: Json): value is Json[] | JsonObject {
  return typeof value === "object" && value !== null && !isRawNumber(value);
}

function pathOf(place: Place | undefined): string {
  if (!place) return "";
  const path = pathOf(place.within);
  if (typeof place.key === "number") return `${path}[${place.key}]`;
  return path === "" ? place.key : `${path}.${place.key}`;
}

/** Returns whether two normalized values are equal. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined || typeof a !== typeof b) return false;
  if (typeof a !== "object") return false;
  return JSON.stringify(a) === JSON.stringify(b);
}
