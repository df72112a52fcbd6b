import type { Leaf } from "./leaf.ts";
import { apiVersion, kind, schema } from "./schema.ts";
import { isSection, type Section } from "./section.ts";

/**
 * Returns the JSON schema (draft 2020-12) of a configuration file, for editors and admission. Ranges of durations are
 * only in the descriptions.
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

/**
 * Returns the JSON schema of `AgentConfiguration` as the agent runs it. Durations are in milliseconds, sizes in bytes.
 */
export function configurationInForceSchema(): Record<string, unknown> {
  return { title: kind, ...inForce(schema) };
}

function inForce({ about, settings }: Section): Record<string, unknown> {
  const properties = Object.entries(settings).map(([name, node]) => {
    if (isSection(node)) return [name, inForce(node)];
    return [name, { description: node.about, ...(node.parsedSchema ?? node.jsonSchema) }];
  });
  return {
    type: "object",
    description: about,
    required: Object.keys(settings),
    properties: Object.fromEntries(properties),
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
