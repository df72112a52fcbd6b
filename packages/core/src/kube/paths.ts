import { NodekeeperError } from "../lib/index.ts";
import type { ApiResource } from "./types.ts";

/** Query parameters. Undefined ones are omitted. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Returns the path of a group version: "/api/v1" or "/apis/apps/v1". */
export function groupVersionPath(group: string, version: string): string {
  return group
    ? `/apis/${segment("group", group)}/${segment("version", version)}`
    : `/api/${segment("version", version)}`;
}

/** Returns the path of a resource's objects, in one namespace or in all. */
export function collectionPath(resource: ApiResource, namespace?: string): string {
  const base = groupVersionPath(resource.group, resource.version);
  const plural = segment("resource", resource.plural);
  if (!resource.namespaced || !namespace) return `${base}/${plural}`;
  return `${base}/namespaces/${segment("namespace", namespace)}/${plural}`;
}

/**
 * Returns the path of an object or of its subresource. Throws `invalid` if a name is invalid or the namespace is
 * missing.
 */
export function objectPath(
  resource: ApiResource,
  place: { name: string | undefined; namespace?: string | undefined; subresource?: string | undefined },
) {
  requireNamespace(resource, place.namespace);
  const path = `${collectionPath(resource, place.namespace)}/${segment(`name of the ${resource.kind}`, place.name)}`;
  return place.subresource ? `${path}/${segment("subresource", place.subresource)}` : path;
}

/** Throws `invalid` if the resource is namespaced and no namespace is given. */
export function requireNamespace(resource: ApiResource, namespace: string | undefined): void {
  if (!resource.namespaced || namespace) return;
  throw new NodekeeperError("invalid", `${resource.kind}: a namespace is required`);
}

/** Returns the path with its query. */
export function withQuery(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  return parameters.size > 0 ? `${path}?${parameters}` : path;
}

// A name must be a single path segment. One with a slash or only dots would address a different path.
function segment(what: string, value: string | undefined): string {
  if (value && value !== "." && value !== ".." && !/[/%]/.test(value) && value.length <= 253) {
    return encodeURIComponent(value);
  }
  const shown = value === undefined ? "missing" : JSON.stringify(value.slice(0, 80));
  throw new NodekeeperError("invalid", `${what}: ${shown} is not a name`);
}
