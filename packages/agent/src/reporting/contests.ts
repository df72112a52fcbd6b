import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { ManagedFieldsEntry } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import type { Contents } from "./content.ts";
import { isObject, type Json, type JsonObject } from "./json.ts";
import { hasField } from "./owned-values.ts";

/** A field that another client writes repeatedly. */
type Contest = ApiAnswers["objects"][number]["contested"][number];

interface Entry {
  steps: readonly string[];
  writers: Set<string>;
  times: number;
  lastAt: number;
}

// One or two changes may be manual edits.
const CONTESTED_AFTER_REPAIRS = 3;
// A field is no longer contested after this time without changes by other clients.
const MEMORY_MS = 900_000;
const MAX_PATHS = 100;

/** Counts changes by other clients to the agent's fields in one object. */
export class Contests {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Records fields that the agent is about to restore. Returns the paths that became contested.
   * @param lost field sets in fieldsV1 format
   * @param managers managedFields entries of other field managers
   */
  note(
    lost: readonly JsonObject[],
    managers: readonly ManagedFieldsEntry[],
  ): { path: string; writers: string[] }[] {
    const now = this.#clock.monotonic();
    for (const [path, { lastAt }] of this.#entries) if (now - lastAt > MEMORY_MS) this.#entries.delete(path);
    return lost.flatMap(leavesOf).flatMap((elements) => {
      const steps = elements.map(readable);
      const path = steps.join(".");
      if (!this.#entries.has(path) && this.#entries.size >= MAX_PATHS) return [];
      const entry = this.#entries.get(path) ?? { steps, writers: new Set(), times: 0, lastAt: now };
      this.#entries.set(path, entry);
      for (const each of managers)
        if (each.manager !== undefined && hasField(each, elements)) entry.writers.add(each.manager);
      entry.times++;
      entry.lastAt = now;
      return entry.times === CONTESTED_AFTER_REPAIRS ? [{ path, writers: [...entry.writers].sort() }] : [];
    });
  }

  /** Returns the contested fields and the plugins that report them. */
  list(contents: Contents, object: string): Contest[] {
    const now = this.#clock.monotonic();
    return [...this.#entries].flatMap(([path, { steps, writers, times, lastAt }]) => {
      if (times < CONTESTED_AFTER_REPAIRS || now - lastAt > MEMORY_MS) return [];
      const plugins = [...contents].filter(([, { fields }]) =>
        fields.some((field) => {
          const [part, name, ...below] = steps;
          return (
            field.object === object &&
            field.part === part &&
            field.name === name &&
            reports(field.value, below)
          );
        }),
      );
      return [
        { path, writers: [...writers].sort(), times, plugins: plugins.map(([plugin]) => plugin).sort() },
      ];
    });
  }
}

/** Returns the fields of `expected` that are missing from `seen`. */
export function lostFields(expected: JsonObject, seen: JsonObject | undefined): JsonObject {
  const lost: JsonObject = {};
  for (const [element, below] of Object.entries(expected)) {
    if (element === ".") continue;
    const other = seen && Object.hasOwn(seen, element) ? seen[element] : undefined;
    if (!isObject(other)) lost[element] = below;
    else if (isObject(below)) {
      const rest = lostFields(below, other);
      if (Object.keys(rest).length > 0) lost[element] = rest;
    }
  }
  return lost;
}

function leavesOf(fields: JsonObject): string[][] {
  return Object.entries(fields).flatMap(([element, below]) => {
    if (element === ".") return [];
    const rest = isObject(below) ? leavesOf(below) : [];
    return rest.length > 0 ? rest.map((path) => [element, ...path]) : [[element]];
  });
}

function readable(element: string): string {
  return element.startsWith("f:") ? element.slice(2) : `[${element.slice(2)}]`;
}

// Does not descend into lists: they are atomic, or their items have keys that only the server's schema defines.
function reports(value: Json, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined || !isObject(value)) return true;
  return Object.hasOwn(value, first) && reports(value[first]!, rest);
}
