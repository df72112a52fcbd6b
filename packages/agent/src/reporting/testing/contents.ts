import {
  FieldType,
  type GetReportContentResponse,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import type { GroupVersionKind } from "@nodekeeper/core/kube";
import { type Contents, type PluginContent, parseContent } from "../content.ts";
import type { Reports } from "../context.ts";
import { customNodeResource, kindPolicies } from "../kinds.ts";

const types = { spec: FieldType.Spec, status: FieldType.Status, metadata: FieldType.Metadata };

/** Creates a field of a message. The value is serialized as JSON. */
export function field(part: keyof typeof types | number, fieldName: string, value: unknown) {
  const fieldType = typeof part === "number" ? (part as FieldType) : types[part];
  const text = value instanceof RawText ? value.text : JSON.stringify(value);
  return { fieldType, fieldName, value: new TextEncoder().encode(text) };
}

/** Text that is used verbatim as a field's value. */
export class RawText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Creates a message with fields of one kind. */
export function message(
  fields: ReturnType<typeof field>[],
  groupVersionKind: GroupVersionKind | undefined = customNodeResource,
): GetReportContentResponse {
  return { content: [{ groupVersionKind, field: fields }] };
}

/** Returns the validated content of a message, with the given additional kinds configured. */
export function contentOf(
  response: GetReportContentResponse,
  previous?: PluginContent,
  additional: readonly GroupVersionKind[] = [],
): PluginContent {
  return parseContent(response, kindPolicies(additional), previous);
}

/** Returns reports of live plugins with these contents, which tests may modify. */
export function reportsOf(contents: Contents): Reports {
  return { contents: () => new Map(contents), lost: () => new Set(), flush: async () => {} };
}
