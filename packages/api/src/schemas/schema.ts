/** A JSON Schema, draft 2020-12, as used by OpenAPI 3.1. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/** A schema, typed by the JSON values it describes. */
export interface Schema<T> {
  readonly json: JsonSchema;
  /** Whether the member is optional in an object. */
  readonly isOptional?: true;
  /** Only for type inference; never set. */
  readonly value?: () => T;
}

/** The type of the values that a schema describes. */
export type ValueOf<S> = S extends Schema<infer T> ? T : never;

type Members = Readonly<Record<string, Schema<unknown>>>;
type OptionalKey<M extends Members> = {
  [K in keyof M]: M[K] extends { readonly isOptional: true } ? K : never;
}[keyof M];
type Flat<T> = { [K in keyof T]: T[K] };
type ObjectOf<M extends Members> = Flat<
  { [K in Exclude<keyof M, OptionalKey<M>>]: ValueOf<M[K]> } & { [K in OptionalKey<M>]?: ValueOf<M[K]> }
>;

const described = (json: JsonSchema, about: string): JsonSchema =>
  about === "" ? json : { ...json, description: about };

export const text = (about = ""): Schema<string> => ({ json: described({ type: "string" }, about) });

export const flag = (about = ""): Schema<boolean> => ({ json: described({ type: "boolean" }, about) });

export const number = (about = ""): Schema<number> => ({ json: described({ type: "number" }, about) });

// The range of Date.
const LARGEST_TIME = 8.64e15;

/** A number from which a time is computed, or that is one. */
const bounded = (about: string): Schema<number> => ({
  json: described({ type: "number", minimum: -LARGEST_TIME, maximum: LARGEST_TIME }, about),
});

/** A period, in seconds. */
export const seconds = (about = ""): Schema<number> => bounded(about);

/** An integer, by default not negative. */
export const integer = (about = "", least = 0): Schema<number> => ({
  json: described({ type: "integer", minimum: least }, about),
});

/** A wall-clock time. */
export const time = (about = ""): Schema<number> =>
  bounded(`${about}${about ? " " : ""}Milliseconds since the epoch.`);

export const oneOf = <const W extends string>(words: readonly W[], about = ""): Schema<W> => ({
  json: described({ type: "string", enum: [...words] }, about),
});

export const list = <T>(item: Schema<T>, about = ""): Schema<T[]> => ({
  json: described({ type: "array", items: item.json }, about),
});

/** An object whose keys are data. */
export const map = <T>(member: Schema<T>, about = ""): Schema<Record<string, T>> => ({
  json: described({ type: "object", additionalProperties: member.json }, about),
});

/** An object with some of these members. */
export const some = <const K extends string, T>(
  keys: readonly K[],
  member: Schema<T>,
  about = "",
): Schema<Partial<Record<K, T>>> => ({
  json: described(
    { type: "object", properties: Object.fromEntries(keys.map((key) => [key, member.json])) },
    about,
  ),
});

export function object<const M extends Members>(members: M, about = ""): Schema<ObjectOf<M>> {
  const entries = Object.entries(members);
  const required = entries.flatMap(([name, { isOptional }]) => (isOptional ? [] : [name]));
  const properties = Object.fromEntries(entries.map(([name, { json }]) => [name, json]));
  return {
    json: described({ type: "object", properties, ...(required.length > 0 ? { required } : {}) }, about),
  };
}

/** One of several objects. */
export const either = <const S extends readonly Schema<unknown>[]>(
  ...schemas: S
): Schema<ValueOf<S[number]>> => ({ json: { anyOf: schemas.map(({ json }) => json) } });

/** Any JSON value. */
export const anything = (about = ""): Schema<unknown> => ({ json: described({}, about) });

/** A JSON schema of another module, generated on demand. */
export const foreign = <T>(make: () => JsonSchema): Schema<T> => ({
  get json() {
    return make();
  },
});

export const constant = <const W extends string | true>(value: W): Schema<W> => ({ json: { const: value } });

export const nullable = <T>({ json }: Schema<T>): Schema<T | null> => {
  const { description, ...rest } = json;
  const either = { anyOf: [json.title === undefined ? rest : json, { type: "null" }] };
  return {
    json: description === undefined || json.title !== undefined ? either : { ...either, description },
  };
};

/** An optional member of an object. */
export const optional = <S extends Schema<unknown>>(schema: S): S & { readonly isOptional: true } => ({
  ...schema,
  isOptional: true,
});

/** Names a schema. The document contains it once, as a component. Names must be unique. */
export const named = <T>(title: string, { json }: Schema<T>): Schema<T> => ({ json: { title, ...json } });

/** What a handler may return for a value of type T: immutable, and undefined is allowed for optional members. */
export type Frozen<T> = T extends (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;
