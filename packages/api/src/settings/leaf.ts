import { NodekeeperError } from "../errors/index.ts";
import {
  durationSchema,
  formatDuration,
  parseByteSize,
  parseDuration,
  quantitySchema,
} from "../text/index.ts";
import { absolutePath } from "./patterns.ts";

export type Live = "live" | "restart";

/** Help text, names and reload behavior of a setting, as declared in the schema. */
export interface About {
  /** One or two sentences for help text, the commented default file and the JSON schema. */
  about: string;
  /** `live` settings are applied by a reload; `restart` settings (the default) require a restart. */
  applied?: Live;
  /** Flag name without dashes. Default: the path in kebab case. `false`: no flag. */
  flag?: string | false;
  /** Environment variables of other programs that are read if the setting's own is not set. */
  aliases?: string[];
}

/** A setting: its default as written in YAML, and how a value is parsed. */
export interface Leaf<T> extends About {
  readonly isLeaf: true;
  readonly initial: unknown;
  /** Describes a valid value; completes "expected ...". */
  readonly expected: string;
  /** Placeholder for the value in help text: "<duration>". */
  readonly placeholder: string;
  /** JSON schema of the value, without description and default. */
  readonly jsonSchema: Record<string, unknown>;
  /** JSON schema of the parsed value. Default: `jsonSchema`. */
  readonly parsedSchema?: Record<string, unknown>;
  /** Parses a YAML value. For an invalid value, throws a NodekeeperError or returns undefined. */
  read(value: unknown): T | undefined;
  /** Converts the text of a flag or variable to the corresponding YAML value, which is passed to `read`. */
  fromText(text: string): unknown;
  /** Converts a parsed value to such a text. `read(fromText(toText(value)))` returns the value. */
  toText(value: T): string;
}

type Kind<T> = Omit<Leaf<T>, keyof About | "isLeaf" | "initial" | "toText"> &
  Partial<Pick<Leaf<T>, "toText">>;

function leaf<T>(kind: Kind<T>, initial: unknown, about: About): Leaf<T> {
  return { toText: String, ...about, ...kind, isLeaf: true, initial };
}

const asIs = (text: string) => text;

/** A string that matches `pattern` completely. `expected` describes the pattern. */
export function text(
  initial: string,
  rule: { pattern: RegExp; expected: string; placeholder?: string; maxLength?: number },
  about: About,
): Leaf<string> {
  const { pattern, expected, placeholder = "<text>", maxLength = 4096 } = rule;
  return leaf<string>(
    {
      expected,
      placeholder,
      jsonSchema: { type: "string", pattern: pattern.source, maxLength },
      read: (value) =>
        typeof value === "string" && value.length <= maxLength && pattern.test(value) ? value : undefined,
      fromText: asIs,
    },
    initial,
    about,
  );
}

/** An absolute path. */
export function path(initial: string, about: About): Leaf<string> {
  return text(initial, { pattern: absolutePath, expected: "an absolute path", placeholder: "<path>" }, about);
}

const pathOrEmpty = { expected: "an absolute path, or empty", placeholder: "<path>" };

/** An absolute path or "". */
export function optionalPath(initial: string, about: About): Leaf<string> {
  return text(initial, { ...pathOrEmpty, pattern: /^(\/[^\0]*)?$/ }, about);
}

/** An absolute path other than "/", or "". */
export function optionalPathBelowRoot(initial: string, about: About): Leaf<string> {
  return text(initial, { ...pathOrEmpty, pattern: /^(\/[^\0]+)?$/ }, about);
}

/** A list of absolute paths. */
export function paths(initial: string[], minItems: number, maxItems: number, about: About): Leaf<string[]> {
  const rule = { pattern: absolutePath, expected: "absolute paths", placeholder: "<path,...>" };
  return textList(initial, { ...rule, minItems, maxItems }, about);
}

/** One of `words`. */
export function oneOf<const W extends string>(initial: W, words: readonly W[], about: About): Leaf<W> {
  return leaf<W>(
    {
      expected: `one of ${words.join(", ")}`,
      placeholder: `<${words.join("|")}>`,
      jsonSchema: { enum: [...words] },
      read: (value) => words.find((word) => word === value),
      fromText: asIs,
    },
    initial,
    about,
  );
}

/** A Go-style duration from `min` to `max`, parsed to milliseconds. */
export function duration(initial: string, min: string, max: string, about: About): Leaf<number> {
  const [minMs, maxMs] = [parseDuration(min), parseDuration(max)];
  return leaf<number>(
    {
      expected: `a duration from ${min} to ${max}, such as "${initial}"`,
      placeholder: "<duration>",
      jsonSchema: durationSchema,
      parsedSchema: { type: "number", minimum: minMs, maximum: maxMs },
      read: (value) => (typeof value === "string" ? within(parseDuration(value), minMs, maxMs) : undefined),
      fromText: asIs,
      toText: formatDuration,
    },
    initial,
    about,
  );
}

/** A size written as a quantity, from `min` to `max`, parsed to bytes. */
export function byteSize(initial: string, min: string, max: string, about: About): Leaf<number> {
  const [minBytes, maxBytes] = [parseByteSize(min), parseByteSize(max)];
  return leaf<number>(
    {
      expected: `a size from ${min} to ${max}, such as "${initial}"`,
      placeholder: "<size>",
      jsonSchema: { ...quantitySchema, type: ["string", "number"], minimum: minBytes, maximum: maxBytes },
      parsedSchema: { type: "integer", minimum: minBytes, maximum: maxBytes },
      read(value) {
        const written = typeof value === "number" ? String(value) : value;
        return typeof written === "string" ? within(parseByteSize(written), minBytes, maxBytes) : undefined;
      },
      fromText: asIs,
    },
    initial,
    about,
  );
}

export function integer(initial: number, min: number, max: number, about: About): Leaf<number> {
  return numberLeaf("integer", { initial, min, max, about });
}

export function decimal(initial: number, min: number, max: number, about: About): Leaf<number> {
  return numberLeaf("number", { initial, min, max, about });
}

function numberLeaf(
  type: "integer" | "number",
  { initial, min, max, about }: { initial: number; min: number; max: number; about: About },
): Leaf<number> {
  const isOfType = type === "integer" ? Number.isInteger : (value: unknown) => typeof value === "number";
  return leaf<number>(
    {
      expected: `a ${type === "integer" ? "whole number" : type} from ${min} to ${max}`,
      placeholder: "<number>",
      jsonSchema: { type, minimum: min, maximum: max },
      read: (value) => (isOfType(value) ? within(value as number, min, max) : undefined),
      fromText: numberFromText,
    },
    initial,
    about,
  );
}

export function boolean(initial: boolean, about: About): Leaf<boolean> {
  return leaf<boolean>(
    {
      expected: "true or false",
      placeholder: "[true|false]",
      jsonSchema: { type: "boolean" },
      read: (value) => (typeof value === "boolean" ? value : undefined),
      fromText: (written) => (written === "true" ? true : written === "false" ? false : written),
    },
    initial,
    about,
  );
}

/**
 * A list of distinct strings that each match `pattern` completely and do not match `except`. Comma-separated in a flag
 * or variable.
 */
export function textList<T extends string = string>(
  initial: NoInfer<T>[],
  rule: {
    pattern: RegExp;
    except?: RegExp;
    expected: string;
    placeholder: string;
    minItems?: number;
    maxItems: number;
  },
  about: About,
): Leaf<T[]> {
  const { pattern, except, expected, placeholder, minItems = 0, maxItems } = rule;
  return leaf<T[]>(
    {
      expected: `a list of ${minItems} to ${maxItems} ${expected}, without duplicates`,
      placeholder,
      jsonSchema: {
        type: "array",
        items: {
          type: "string",
          pattern: pattern.source,
          ...(except && { not: { pattern: except.source } }),
          maxLength: 4096,
        },
        minItems,
        maxItems,
        uniqueItems: true,
      },
      read(value) {
        if (!isListWithin(value, minItems, maxItems) || new Set(value).size !== value.length)
          return undefined;
        const isItem = (item: unknown): item is T =>
          typeof item === "string" && item.length <= 4096 && pattern.test(item) && !except?.test(item);
        return value.every(isItem) ? [...value] : undefined;
      },
      fromText: (written) =>
        written
          .split(",")
          .map((item) => item.trim())
          .filter((item) => item !== ""),
      toText: (list) => list.join(","),
    },
    initial,
    about,
  );
}

/** A list of names to include: "name"; "*" for all; "-name" for an exception. */
export function nameSelection(
  initial: string[],
  rule: { expected: string; maxItems: number },
  about: About,
): Leaf<string[]> {
  const pattern = /^(\*|-?[A-Za-z0-9][A-Za-z0-9._-]{0,252})$/;
  return textList(initial, { ...rule, pattern, placeholder: "<name,...>" }, about);
}

/** The same for names that are known. `"*"` stands for those that are on by default. */
export function knownNameSelection(
  initial: string[],
  names: readonly string[],
  about: About,
): Leaf<string[]> {
  const rule = {
    pattern: new RegExp(`^(\\*|-?(${names.join("|")}))$`),
    expected: `names: "*" for all enabled by default, "name" to add one, "-name" to exclude one, of ${names.join(", ")}`,
    placeholder: "<name,...>",
    maxItems: 64,
  };
  const list = textList(initial, rule, about);
  // The messages of validators show it, which is clearer than a pattern.
  const items = { enum: ["*", ...names, ...names.map((name) => `-${name}`)] };
  return { ...list, jsonSchema: { ...list.jsonSchema, items } };
}

/** A list of distinct objects with exactly the given string fields. It has no flag. JSON in a variable. */
export function objectList<Field extends string>(
  fields: Record<Field, { pattern: RegExp; maxLength: number; expected: string }>,
  rule: { expected: string; maxItems: number },
  about: Omit<About, "flag" | "aliases">,
): Leaf<Record<Field, string>[]> {
  const names = Object.keys(fields) as Field[];
  const isObject = (item: unknown): item is Record<Field, string> => {
    if (typeof item !== "object" || item === null || Object.keys(item).length !== names.length) return false;
    const values = item as Record<string, unknown>;
    return names.every((name) => {
      const { pattern, maxLength } = fields[name];
      const value = values[name];
      return typeof value === "string" && value.length <= maxLength && pattern.test(value);
    });
  };
  const properties = names.map((name) => {
    const { pattern, maxLength, expected } = fields[name];
    return [name, { type: "string", pattern: pattern.source, maxLength, description: expected }];
  });
  return leaf<Record<Field, string>[]>(
    {
      expected: `a list of at most ${rule.maxItems} ${rule.expected}, without duplicates`,
      placeholder: "",
      jsonSchema: {
        type: "array",
        maxItems: rule.maxItems,
        uniqueItems: true,
        items: {
          type: "object",
          properties: Object.fromEntries(properties),
          required: names,
          additionalProperties: false,
        },
      },
      read(value) {
        if (!isListWithin(value, 0, rule.maxItems) || !value.every(isObject)) return undefined;
        const keys = new Set(value.map((item) => names.map((name) => item[name]).join("\n")));
        return keys.size === value.length ? value.map((item) => ({ ...item })) : undefined;
      },
      fromText: valueOfJson,
      toText: (list) => JSON.stringify(list),
    },
    [],
    { ...about, flag: false },
  );
}

function isListWithin(value: unknown, min: number, max: number): value is unknown[] {
  return Array.isArray(value) && value.length >= min && value.length <= max;
}

function within(value: number, min: number, max: number): number | undefined {
  return value >= min && value <= max ? value : undefined;
}

function valueOfJson(written: string): unknown {
  try {
    return JSON.parse(written);
  } catch {
    return written;
  }
}

function numberFromText(written: string): unknown {
  return /^[+-]?\d+(\.\d+)?$/.test(written) ? Number(written) : written;
}

/** Parses a value. Undefined if it is invalid. */
export function readLeaf<T>(setting: Pick<Leaf<T>, "read">, value: unknown): T | undefined {
  try {
    return setting.read(value);
  } catch (error) {
    if (error instanceof NodekeeperError) return undefined;
    throw error;
  }
}

const MAX_VALUE_LENGTH = 80;

/** Returns "got 5, expected ...", with the value as truncated JSON. */
export function wrongValue(value: unknown, expected: string): string {
  const written = JSON.stringify(value) ?? String(value);
  const shown = written.length > MAX_VALUE_LENGTH ? `${written.slice(0, MAX_VALUE_LENGTH)}...` : written;
  return `got ${shown}, expected ${expected}`;
}
