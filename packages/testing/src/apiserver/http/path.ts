/** Components of a resource path. */
export interface ResourcePath {
  group: string;
  version: string;
  namespace?: string | undefined;
  plural: string;
  name?: string | undefined;
  subresource?: string | undefined;
}

/** Parses `/api/v1/...` and `/apis/<group>/<version>/...`. Undefined for other paths. */
export function parseResourcePath(pathname: string): ResourcePath | undefined {
  let parts: string[];
  try {
    parts = pathname.split("/").slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
  const [prefix] = parts;
  if (prefix !== "api" && prefix !== "apis") return undefined;
  const group = prefix === "api" ? "" : (parts[1] ?? "");
  const [version, ...rest] = parts.slice(prefix === "api" ? 1 : 2);
  if (!version || rest.length === 0 || rest.includes("")) return undefined;
  // `namespaces/x` and its subresources address the namespace itself. Longer paths are within it.
  const insideNamespace =
    rest[0] === "namespaces" && rest.length > 2 && rest[2] !== "status" && rest[2] !== "finalize";
  const [plural, name, subresource, ...more] = insideNamespace ? rest.slice(2) : rest;
  if (!plural || more.length > 0) return undefined;
  return { group, version, namespace: insideNamespace ? rest[1] : undefined, plural, name, subresource };
}
