import { configurationJsonSchema } from "@nodekeeper/api/settings";

interface Schema {
  [keyword: string]: unknown;
  properties?: Record<string, Schema>;
}

/** The chart's values.schema.json with the schema of `config`: the settings of the AgentConfiguration. */
export function chartSchema(file: string): string {
  const schema: Schema = JSON.parse(file);
  // The chart sets these two.
  const { apiVersion: _, kind: __, ...properties } = (configurationJsonSchema() as Schema).properties!;
  schema.properties!.config = lean({ type: "object", additionalProperties: false, properties }) as Schema;
  return `${JSON.stringify(schema, null, 2)}\n`;
}

const unused: ReadonlySet<string> = new Set(["description", "default", "pattern"]);

/** Without the texts, and without patterns: Helm's regular expressions are Go's, which have no lookahead. */
function lean(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lean);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([keyword]) => !unused.has(keyword));
  return Object.fromEntries(
    kept.map(([keyword, inner]) => [keyword, keyword === "properties" ? leanEach(inner) : lean(inner)]),
  );
}

/** Settings may have the name of a keyword. */
function leanEach(properties: Record<string, Schema>): object {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, lean(schema)]));
}
