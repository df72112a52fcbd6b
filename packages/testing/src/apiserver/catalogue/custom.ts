import type { KubeObject } from "@nodekeeper/core/kube";
import { at, isTree, type Tree } from "../json.ts";
import { invalid } from "../status.ts";
import { ageOf, nameColumn } from "./columns.ts";
import type { Column, ResourceDefinition } from "./definition.ts";
import { compileJsonPath } from "./json-path.ts";
import { mergeRulesOnDemand, metadataRef, objectSchema } from "./open-api.ts";

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

/** Returns the kind defined by a CustomResourceDefinition. Throws a 422, naming the field, if it is not usable. */
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
    versions: versions
      .filter(({ served }) => served !== false)
      .map(({ name, schema }) => ({ name, openapi: checkedSchema(schema?.openAPIV3Schema) })),
    storage: `${names.plural}.${group}`,
    storedApiVersion: `${group}/${storage.name}`,
    status: storage.subresources?.status !== undefined,
    generation: true,
    custom: true,
    needsResourceVersion: true,
    ...(columns ? { columns } : {}),
    mergeRules: mergeRulesOnDemand(checkedSchema(storage.schema?.openAPIV3Schema) ?? objectSchema),
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

/** Returns the status of an established definition. */
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

/** Returns the schema for validation: that of the definition, with the standard metadata. */
function checkedSchema(schema: unknown): Tree | undefined {
  if (!isTree(schema) || !isTree(schema.properties)) return undefined;
  const text = { type: "string" };
  return {
    ...schema,
    properties: { ...schema.properties, apiVersion: text, kind: text, metadata: metadataRef },
  };
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
