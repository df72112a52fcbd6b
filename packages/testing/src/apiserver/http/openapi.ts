import type { Catalogue } from "../catalogue/catalogue.ts";
import type { ResourceDefinition } from "../catalogue/definition.ts";

/** `/openapi/v2`, without schemas. kubectl uses version 3 for field validation. */
export const openapiV2 = {
  swagger: "2.0",
  info: { title: "Nodekeeper development API", version: "v1" },
  paths: {},
  definitions: {},
};

/** Returns `/openapi/v3`, the index of documents. */
export function openapiIndex(catalogue: Catalogue): unknown {
  const paths: Record<string, unknown> = {};
  for (const definition of catalogue.all()) {
    for (const version of definition.versions) {
      const path = prefixOf(definition.group, version.name);
      paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${catalogue.generation}` };
    }
  }
  return { paths };
}

/**
 * Returns the document of a group version. It declares that PATCH supports `fieldValidation`, by which kubectl detects
 * server-side validation. It does not describe fields. Undefined if the group version is not served.
 */
export function openapiDocument(catalogue: Catalogue, path: string): unknown {
  const paths: Record<string, unknown> = {};
  for (const definition of catalogue.all()) {
    for (const version of definition.versions) {
      if (prefixOf(definition.group, version.name) !== path) continue;
      paths[objectPath(definition, path)] = operations(definition, version.name);
    }
  }
  if (Object.keys(paths).length === 0) return undefined;
  return {
    openapi: "3.0.0",
    info: { title: "Nodekeeper development API", version: "v1" },
    paths,
    components: { schemas: {} },
  };
}

function operations(definition: ResourceDefinition, version: string): unknown {
  const parameters = ["fieldManager", "fieldValidation", "dryRun", "force"].map((name) => ({
    name,
    in: "query",
    schema: { type: name === "force" ? "boolean" : "string" },
  }));
  const answers = { responses: { "200": { description: "OK" } } };
  const kind = { group: definition.group, version, kind: definition.kind };
  return {
    patch: {
      "x-kubernetes-action": "patch",
      "x-kubernetes-group-version-kind": kind,
      parameters,
      ...answers,
    },
    put: { "x-kubernetes-action": "put", "x-kubernetes-group-version-kind": kind, parameters, ...answers },
  };
}

function objectPath(definition: ResourceDefinition, prefix: string): string {
  return `/${prefix}/${definition.namespaced ? "namespaces/{namespace}/" : ""}${definition.plural}/{name}`;
}

function prefixOf(group: string, version: string): string {
  return group ? `apis/${group}/${version}` : `api/${version}`;
}
