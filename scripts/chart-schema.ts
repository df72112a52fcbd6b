// The part of the chart's values.schema.json that checks `config`: the settings of the AgentConfiguration.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { configurationJsonSchema } from "@nodekeeper/api/settings";
import { root } from "./run-command.ts";

/** Where the file is. */
export const CHART_SCHEMA = "deploy/helm/nodekeeper/values.schema.json";

interface Schema {
  [keyword: string]: unknown;
  properties?: Record<string, Schema>;
}

/** The file with the schema of `config` that the settings give. */
export async function chartSchema(): Promise<string> {
  const schema: Schema = JSON.parse(await readFile(join(root, CHART_SCHEMA), "utf8"));
  // The chart sets the first two.
  const {
    apiVersion: _version,
    kind: _kind,
    ...settings
  } = (configurationJsonSchema() as Schema).properties!;
  schema.properties!.config = lean({ type: "object", additionalProperties: false, properties: settings });
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** Without the texts, and without patterns: Helm's regular expressions are Go's, which have no lookahead. */
function lean(schema: Schema): Schema {
  const kept = Object.entries(schema).filter(([keyword]) => !unused.has(keyword));
  return Object.fromEntries(
    kept.map(([keyword, value]) => [keyword, keyword === "properties" ? leanEach(value) : leanValue(value)]),
  );
}

const unused: ReadonlySet<string> = new Set(["description", "default", "pattern"]);

function leanEach(properties: unknown): Schema {
  const entries = Object.entries(properties as Record<string, Schema>);
  return Object.fromEntries(entries.map(([name, each]) => [name, lean(each)]));
}

function leanValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(leanValue);
  return typeof value === "object" && value !== null ? lean(value as Schema) : value;
}
