import type { KubeObject } from "@nodekeeper/core/kube";
import { defaultColumns } from "../catalogue/columns.ts";
import {
  type Column,
  encodeVersion,
  type ResourceDefinition,
  type ServedVersion,
} from "../catalogue/definition.ts";
import type { Call } from "./call.ts";

/** Requested form of objects: complete, metadata only, or table rows. */
export type Form =
  | { as: "object" }
  | { as: "metadata" }
  | { as: "table"; include: "None" | "Metadata" | "Object" };

/** Returns the first supported form in the Accept header. Default: complete objects. */
export function formOf(call: Call): Form {
  for (const type of call.accepted) {
    if (!type.startsWith("application/json") || !type.includes("g=meta.k8s.io") || !type.includes("v=v1"))
      continue;
    if (type.includes("v=v1beta1")) continue;
    if (type.includes("as=Table")) {
      const include = call.query.get("includeObject");
      return { as: "table", include: include === "None" || include === "Object" ? include : "Metadata" };
    }
    if (type.includes("as=PartialObjectMetadata")) return { as: "metadata" };
  }
  return { as: "object" };
}

/** Parameters of a representation. */
export interface View {
  definition: ResourceDefinition;
  version: ServedVersion;
  form: Form;
  /** Current time in milliseconds, for ages. */
  now: number;
}

/** Metadata of a list (ListMeta). */
export interface ListMeta {
  resourceVersion: string;
  continue?: string;
  remainingItemCount?: number;
}

export function representObject(object: KubeObject, view: View): unknown {
  if (view.form.as === "object") return encodeVersion(object, view.definition, view.version);
  if (view.form.as === "metadata") return metadataOnly(object);
  return table([object], view, { resourceVersion: object.metadata.resourceVersion ?? "" });
}

export function representList(objects: KubeObject[], metadata: ListMeta, view: View): unknown {
  const { definition, version, form } = view;
  if (form.as === "table") return table(objects, view, metadata);
  if (form.as === "metadata") {
    const items = objects.map(metadataOnly);
    return { kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", metadata, items };
  }
  const apiVersion = definition.group ? `${definition.group}/${version.name}` : version.name;
  const items = objects.map((object) => encodeVersion(object, definition, version));
  return { kind: `${definition.kind}List`, apiVersion, metadata, items };
}

function metadataOnly({ metadata }: KubeObject): unknown {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata };
}

function table(objects: KubeObject[], view: View, metadata: ListMeta): unknown {
  const columns = view.definition.columns ?? defaultColumns;
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: columns.map(describeColumn),
    rows: objects.map((object) => row(object, columns, view)),
  };
}

function describeColumn({ name, type, priority = 0, description = "" }: Column): unknown {
  return { name, type, format: name === "Name" ? "name" : "", description, priority };
}

function row(object: KubeObject, columns: Column[], { definition, version, form, now }: View): unknown {
  const include = form.as === "table" ? form.include : "Metadata";
  const cells = columns.map((column) => column.cell(object, now));
  if (include === "None") return { cells, object: null };
  return {
    cells,
    object: include === "Object" ? encodeVersion(object, definition, version) : metadataOnly(object),
  };
}
