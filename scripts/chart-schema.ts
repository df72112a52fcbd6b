import { configurationJsonSchema, settings } from "@nodekeeper/api/settings";

interface Schema {
  [keyword: string]: unknown;
  properties?: Record<string, Schema>;
}

/**
 * The chart's values.schema.json with the schema of `config`, which are the settings of the AgentConfiguration, and of
 * values that become settings.
 */
export function chartSchema(file: string): string {
  const schema: Schema = JSON.parse(file);
  // The chart sets these two.
  const { apiVersion: _, kind: __, ...properties } = (configurationJsonSchema() as Schema).properties!;
  const config = lean({ type: "object", additionalProperties: false, properties }) as Schema;
  const values = schema.properties!;
  values.config = config;
  values.reporting!.properties!.inTreePlugins = valueIn(config, "reporting", "inTreePlugins");
  values.lifecycle!.properties!.runtimeEndpoint = valueIn(config, "runtime", "endpoint");
  for (const name of ["endpoint", "protocol"])
    values.archive!.properties![name] = valueIn(config, "archive", name);
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/**
 * The chart's files/settings.json, which its templates read: the ranges of durations in milliseconds and of sizes in
 * bytes, which a JSON schema cannot check, and the settings that need a restart.
 */
export function chartSettings(): string {
  const rangesOf = (placeholder: string) =>
    Object.fromEntries(
      settings
        .filter((setting) => setting.placeholder === placeholder)
        .map(({ path, expected, parsedSchema }) => [
          path,
          { minimum: parsedSchema!.minimum, maximum: parsedSchema!.maximum, expected },
        ]),
    );
  const restart = settings.filter(({ isLive }) => !isLive).map(({ path }) => path);
  const content = { durations: rangesOf("<duration>"), sizes: rangesOf("<size>"), restart };
  return `${JSON.stringify(content, null, 2)}\n`;
}

function valueIn(schema: Schema, section: string, name: string): Schema {
  return schema.properties![section]!.properties![name]!;
}

const unused: ReadonlySet<string> = new Set(["description", "default"]);

/** Without the texts. */
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
