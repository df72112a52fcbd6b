import type { Leaf } from "./leaf.ts";
import { apiVersion, kind, schema } from "./schema.ts";
import type { Section } from "./section.ts";
import { isSection } from "./settings.ts";

/**
 * The JSON schema (draft 2020-12) of a configuration file, for editors and admission. Ranges of durations are given only
 * in the descriptions.
 */
export function configurationJsonSchema(): Record<string, unknown> {
  const { properties, ...rest } = ofSection(schema);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: kind,
    ...rest,
    required: ["apiVersion", "kind"],
    properties: { apiVersion: { const: apiVersion }, kind: { const: kind }, ...(properties as object) },
  };
}

function ofSection(section: Section): Record<string, unknown> {
  const properties = Object.entries(section.settings).map(([name, node]) => [
    name,
    isSection(node) ? { ...ofSection(node), type: ["object", "null"] } : ofLeaf(node),
  ]);
  return {
    type: "object",
    description: section.about,
    additionalProperties: false,
    properties: Object.fromEntries(properties),
  };
}

function ofLeaf(leaf: Leaf<unknown>): Record<string, unknown> {
  return {
    description: `${leaf.about} Expected: ${leaf.expected}.`,
    ...leaf.jsonSchema,
    default: leaf.initial,
  };
}
