import type { ManagedFieldsEntry } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import { isObject, type Json, type JsonObject } from "./json.ts";
import type { Contents } from "./part-writer.ts";

/** A field that another client writes as well, again and again. */
export interface Contest {
  /** "status.capacity.example.com/gpus" */
  path: string;
  /** Field managers that took it, sorted. */
  writers: readonly string[];
  /** How often it was put back. */
  times: number;
  /** The plugins that report it, sorted. */
  plugins: readonly string[];
}

interface Entry {
  steps: readonly string[];
  writers: Set<string>;
  times: number;
  lastAt: number;
}

// Once or twice is a slip of a person with kubectl.
const WAR_TIMES = 3;
// One that ended is of no interest any more.
const MEMORY_MS = 900_000;
const MOST_PATHS = 100;

/** Remembers which fields of one object were taken from the agent, by whom, and how often. */
export class Contests {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Takes note of fields that are put back. Gives the paths that have just become contested.
   * @param lost field sets as fieldsV1
   * @param managers the object's managedFields of other managers
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
      if (!this.#entries.has(path) && this.#entries.size >= MOST_PATHS) return [];
      const entry = this.#entries.get(path) ?? { steps, writers: new Set(), times: 0, lastAt: now };
      this.#entries.set(path, entry);
      for (const { manager, fieldsV1 } of managers) {
        if (manager !== undefined && has(fieldsV1 as Json | undefined, elements)) entry.writers.add(manager);
      }
      entry.times++;
      entry.lastAt = now;
      return entry.times === WAR_TIMES ? [{ path, writers: [...entry.writers].sort() }] : [];
    });
  }

  /** The fields that are contested, with the plugins that report them. */
  list(contents: Contents, object: string): Contest[] {
    const now = this.#clock.monotonic();
    return [...this.#entries].flatMap(([path, { steps, writers, times, lastAt }]) => {
      if (times < WAR_TIMES || now - lastAt > MEMORY_MS) return [];
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

/** What of a field set is not in another one. */
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

function has(fields: Json | undefined, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined) return true;
  return isObject(fields) && Object.hasOwn(fields, first) && has(fields[first], rest);
}

function readable(element: string): string {
  return element.startsWith("f:") ? element.slice(2) : `[${element.slice(2)}]`;
}

// A list is one field to the server, or its items have names that only the server knows.
function reports(value: Json, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined || !isObject(value)) return true;
  return Object.hasOwn(value, first) && reports(value[first]!, rest);
}
