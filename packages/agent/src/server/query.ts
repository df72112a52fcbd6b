import { NodekeeperError } from "@nodekeeper/core/lib";

/** Throws `invalid` for a parameter that the route does not have, or that is given twice: a typing error must not widen an answer. */
export function checkParameters(query: URLSearchParams, known: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of query.keys()) {
    const shown = JSON.stringify(name.slice(0, 60));
    if (!known.includes(name)) {
      throw new NodekeeperError("invalid", `no parameter ${shown}; there are: ${known.join(", ")}`);
    }
    if (seen.has(name)) throw new NodekeeperError("invalid", `the parameter ${shown} is given twice`);
    seen.add(name);
  }
}

/** A whole number from 0 to `most`; `fallback` where it is not given. Throws `invalid`. */
export function wholeNumber(
  query: URLSearchParams,
  name: string,
  { fallback = 0, least = 0, most = Number.MAX_SAFE_INTEGER } = {},
): number {
  const text = query.get(name);
  if (text === null) return fallback;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new NodekeeperError("invalid", `${name} takes a whole number from ${least} to ${most}`);
}
