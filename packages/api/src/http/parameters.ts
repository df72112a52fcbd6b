import { NodekeeperError } from "../errors/index.ts";

/** A query parameter, with the type of its parsed value. */
export interface Parameter<T> {
  readonly about: string;
  readonly json: Readonly<Record<string, unknown>>;
  readonly isRequired: boolean;
  /** Parses the parameter; null if the query lacks it. Throws `invalid`. */
  read(text: string | null, name: string): T;
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** The parsed values of parameters. */
export type ParameterValues<P extends Parameters> = {
  [K in keyof P]: P[K] extends Parameter<infer T> ? T : never;
};

/** An integer; `fallback` if the query lacks it. */
export function wholeNumber(
  about: string,
  { fallback = 0, least = 0, most = Number.MAX_SAFE_INTEGER } = {},
): Parameter<number> {
  return {
    about,
    json: { type: "integer", minimum: least, maximum: most, default: fallback },
    isRequired: false,
    read(text, name) {
      if (text === null) return fallback;
      const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= least && value <= most) return value;
      throw new NodekeeperError("invalid", `${name} must be a whole number from ${least} to ${most}`);
    },
  };
}

/** A string of bounded length; undefined if the query lacks it. */
export function words(about: string, longest: number): Parameter<string | undefined> {
  return {
    about,
    json: { type: "string", minLength: 1, maxLength: longest },
    isRequired: false,
    read(text, name) {
      if (text === null) return undefined;
      if (text.length > 0 && text.length <= longest) return text;
      throw new NodekeeperError("invalid", `${name} must have 1 to ${longest} characters`);
    },
  };
}

/** A required string. `check` validates it; `expected` is used in the error message. */
export function requiredText(
  about: string,
  longest: number,
  check: (text: string) => boolean,
  expected: string,
): Parameter<string> {
  return {
    about,
    json: { type: "string", minLength: 1, maxLength: longest },
    isRequired: true,
    read(text) {
      if (text !== null && text.length <= longest && check(text)) return text;
      throw new NodekeeperError("invalid", expected);
    },
  };
}

/**
 * Parses the parameters of a query. Throws `invalid` for an unknown or duplicated parameter, because a typo must not
 * widen the response.
 */
export function readParameters<P extends Parameters>(
  parameters: P,
  query: { keys(): Iterable<string>; get(name: string): string | null },
): ParameterValues<P> {
  const seen = new Set<string>();
  for (const name of query.keys()) {
    const shown = JSON.stringify(name.slice(0, 60));
    if (!Object.hasOwn(parameters, name)) {
      const known = Object.keys(parameters).join(", ") || "none";
      throw new NodekeeperError("invalid", `unknown parameter ${shown}; known parameters: ${known}`);
    }
    if (seen.has(name)) throw new NodekeeperError("invalid", `the parameter ${shown} is duplicated`);
    seen.add(name);
  }
  const values = Object.entries(parameters).map(([name, each]) => [name, each.read(query.get(name), name)]);
  return Object.fromEntries(values) as ParameterValues<P>;
}
