import {
  FieldType,
  type GroupVersionKind,
  type ReportContent,
  type ReportField,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";

/** A JSON value. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | JsonValue[]
  | { [key: string]: JsonValue | undefined };

/** A field of the object's `spec`, by its JSON name: `spec("nodeResourceProperties", [...])`. */
export function spec(name: string, value: JsonValue): ReportField {
  return field(FieldType.Spec, name, value);
}

/** A field of the object's `status`, by its JSON name: `status("resources", { ... })`. */
export function status(name: string, value: JsonValue): ReportField {
  return field(FieldType.Status, name, value);
}

/** The object's `labels` or `annotations`. */
export function metadata(name: "labels" | "annotations", value: Record<string, string>): ReportField {
  return field(FieldType.Metadata, name, value);
}

/** Fields of this node's CustomNodeResource. */
export function customNodeResource(...fields: ReportField[]): ReportContent {
  return contentOf(
    { group: "node.katalyst.kubewharf.io", version: "v1alpha1", kind: "CustomNodeResource" },
    ...fields,
  );
}

/** Fields of this node's Node object: labels, annotations, capacity and allocatable of extended resources. */
export function node(...fields: ReportField[]): ReportContent {
  return contentOf({ group: "", version: "v1", kind: "Node" }, ...fields);
}

/** Fields of this node's object of any cluster-scoped kind in the agent's configuration. */
export function contentOf(kind: GroupVersionKind, ...fields: ReportField[]): ReportContent {
  return { groupVersionKind: kind, field: fields };
}

function field(fieldType: FieldType, fieldName: string, value: JsonValue): ReportField {
  const json = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`field ${fieldName}: the value can't be written as JSON`);
  return { fieldType, fieldName, value: Buffer.from(json) };
}
