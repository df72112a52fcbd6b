import type { KubeObject } from "@nodekeeper/core/kube";
import { atomic, type FieldSchema, listBy, map, set } from "../fields/schema.ts";
import { at, isTree, type Tree } from "../json.ts";
import { invalid } from "../status.ts";
import { ageOf, nameColumn } from "./columns.ts";
import type { Column, ResourceDefinition } from "./definition.ts";
import { compileJsonPath } from "./json-path.ts";
import { objectSchema } from "./schemas.ts";

interface CrdVersion {
  name: string;
  served?: boolean;
  storage?: boolean;
  schema?: { openAPIV3Schema?: Tree };
  subresources?: { status?: unknown };
  additionalPrinterColumns?: {
    name: string;
    type: string;
    jsonPath: string;
    priority?: number;
    description?: string;
  }[];
}

interface CrdSpec {
  group: string;
  scope: string;
  names: { kind: string; plural: string; singular?: string; shortNames?: string[]; categories?: string[] };
  versions: CrdVersion[];
}

/** The kind that a CustomResourceDefinition defines. Throws a 422 that names the field which can't be used. */
export function definitionOf(crd: KubeObject): ResourceDefinition {
  const { group, scope, names, versions } = readSpec(crd);
  const storage = versions.find((version) => version.storage) ?? versions[0]!;
  const columns = columnsOf(storage);
  return {
    group,
    kind: names.kind,
    plural: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    ...(names.categories ? { categories: names.categories } : {}),
    namespaced: scope === "Namespaced",
    versions: versions.filter(({ served }) => served !== false).map(({ name }) => ({ name })),
    storage: `${names.plural}.${group}`,
    storedApiVersion: `${group}/${storage.name}`,
    status: storage.subresources?.status !== undefined,
    generation: true,
    custom: true,
    needsResourceVersion: true,
    ...(columns ? { columns } : {}),
    schema: withMetadata(schemaOf(storage.schema?.openAPIV3Schema)),
  };
}

function readSpec(crd: KubeObject): CrdSpec {
  const name = crd.metadata.name ?? "";
  const subject = {
    group: "apiextensions.k8s.io",
    plural: "customresourcedefinitions",
    kind: "CustomResourceDefinition",
    name,
  };
  const need = (path: string[]) => {
    if (typeof at(crd, ...path) !== "string")
      throw invalid(subject, path.join("."), "Required value", "FieldValueRequired");
  };
  for (const path of [["group"], ["scope"], ["names", "kind"], ["names", "plural"]]) need(["spec", ...path]);
  const versions = at(crd, "spec", "versions");
  const usable =
    Array.isArray(versions) &&
    versions.length > 0 &&
    versions.every((version) => typeof at(version, "name") === "string");
  if (!usable)
    throw invalid(subject, "spec.versions", "Required value: versions with names", "FieldValueRequired");
  const spec = crd.spec as CrdSpec;
  const expected = `${spec.names.plural}.${spec.group}`;
  if (name !== expected)
    throw invalid(subject, "metadata.name", `must be spec.names.plural+"."+spec.group: ${expected}`);
  return spec;
}

/** The status of a definition that is served. */
export function establishedStatus(crd: KubeObject, time: string): Tree {
  const spec = crd.spec as CrdSpec;
  const storage = spec.versions.find((version) => version.storage) ?? spec.versions[0]!;
  const condition = (type: string, reason: string, message: string) => ({
    type,
    status: "True",
    lastTransitionTime: time,
    reason,
    message,
  });
  return {
    acceptedNames: {
      ...spec.names,
      listKind: `${spec.names.kind}List`,
      singular: spec.names.singular ?? spec.names.kind.toLowerCase(),
    },
    storedVersions: [storage.name],
    conditions: [
      condition("NamesAccepted", "NoConflicts", "no conflicts found"),
      condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ],
  };
}

// Merge rules of a structural schema. Levels without any rule are left out: the default is the same.
function schemaOf(schema: unknown): FieldSchema | undefined {
  if (!isTree(schema)) return undefined;
  if (schema["x-kubernetes-map-type"] === "atomic") return atomic;
  const listType = schema["x-kubernetes-list-type"];
  if (listType === "set") return set;
  if (listType === "map" && Array.isArray(schema["x-kubernetes-list-map-keys"])) {
    return listBy(
      schema["x-kubernetes-list-map-keys"] as string[],
      schemaOf(schema.items),
      defaultsOf(schema.items),
    );
  }
  const values = schemaOf(schema.additionalProperties);
  const fields: Record<string, FieldSchema> = {};
  for (const [field, child] of Object.entries(isTree(schema.properties) ? schema.properties : {})) {
    const below = schemaOf(child);
    if (below) fields[field] = below;
  }
  return values || Object.keys(fields).length > 0 ? map(fields, values) : undefined;
}

function defaultsOf(items: unknown): Record<string, unknown> {
  const properties = at(items, "properties");
  const entries = Object.entries(isTree(properties) ? properties : {});
  return Object.fromEntries(
    entries
      .map(([field, schema]) => [field, at(schema, "default")])
      .filter(([, value]) => value !== undefined),
  );
}

function withMetadata(schema: FieldSchema | undefined): FieldSchema {
  const { fields } = objectSchema as { fields: Record<string, FieldSchema> };
  return map({ ...(schema?.type === "map" ? schema.fields : {}), ...fields });
}

function columnsOf({ additionalPrinterColumns }: CrdVersion): Column[] | undefined {
  if (!additionalPrinterColumns?.length) return undefined;
  const columns = additionalPrinterColumns.map(({ name, type, jsonPath, priority, description }): Column => {
    const read = compileJsonPath(jsonPath);
    return {
      name,
      type: type === "integer" || type === "number" || type === "boolean" ? type : "string",
      ...(priority === undefined ? {} : { priority }),
      ...(description === undefined ? {} : { description }),
      cell: (object, now) => (type === "date" ? ageOf(read?.(object), now) : (read?.(object) ?? "")),
    };
  });
  return [nameColumn, ...columns];
}
