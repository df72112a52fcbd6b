import {
  FieldType,
  type GetReportContentResponse,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import type { GroupVersionKind } from "@nodekeeper/core/kube";
import { type PluginContent, parseContent } from "../content.ts";
import { customNodeResource, kindPolicies } from "../kinds.ts";

const types = { spec: FieldType.Spec, status: FieldType.Status, metadata: FieldType.Metadata };

/** Creates a field of a message for tests; the value is serialized as JSON. */
export function field(part: keyof typeof types | number, fieldName: string, value: unknown) {
  const fieldType = typeof part === "number" ? (part as FieldType) : types[part];
  const text = value instanceof RawText ? value.text : JSON.stringify(value);
  return { fieldType, fieldName, value: new TextEncoder().encode(text) };
}

/** Text that is used as a field's value verbatim. */
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

/** The validated content of a message, with the given additional kinds configured. */
export function contentOf(
  response: GetReportContentResponse,
  previous?: PluginContent,
  additional: readonly GroupVersionKind[] = [],
): PluginContent {
  return parseContent(response, kindPolicies(additional), previous);
}
