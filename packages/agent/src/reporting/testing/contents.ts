import {
  FieldType,
  type GetReportContentResponse,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import type { GroupVersionKind } from "@nodekeeper/core/kube";
import { type PluginContent, parseContent } from "../content.ts";
import { customNodeResource, kindPolicies } from "../kinds.ts";

const types = { spec: FieldType.Spec, status: FieldType.Status, metadata: FieldType.Metadata };

/** A field of a message, its value as JSON text or anything that becomes it. For tests. */
export function field(part: keyof typeof types | number, fieldName: string, value: unknown) {
  const fieldType = typeof part === "number" ? (part as FieldType) : types[part];
  const text = value instanceof RawText ? value.text : JSON.stringify(value);
  return { fieldType, fieldName, value: new TextEncoder().encode(text) };
}

/** Text that stands in a field as it is, JSON or not. */
export class RawText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A message about one kind. */
export function message(
  fields: ReturnType<typeof field>[],
  groupVersionKind: GroupVersionKind | undefined = customNodeResource,
): GetReportContentResponse {
  return { content: [{ groupVersionKind, field: fields }] };
}

/** The content of a message, as an agent takes it that is configured for the additional kinds. */
export function contentOf(
  response: GetReportContentResponse,
  previous?: PluginContent,
  additional: readonly GroupVersionKind[] = [],
): PluginContent {
  return parseContent(response, kindPolicies(additional), previous);
}
