import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configurationJsonSchema, defaultConfiguration, settings } from "@nodekeeper/api/settings";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { defaultConfigurationYaml, loadConfiguration } from "./index.ts";

it("the default file loads as the defaults", async () => {
  const directory = await mkdtemp(join(tmpdir(), "nodekeeper-config-"));
  try {
    const file = join(directory, "default.yaml");
    await writeFile(file, defaultConfigurationYaml());
    const { configuration, origins } = await loadConfiguration({ file, flags: {}, env: {}, hostname: "h" });
    expect(configuration).toEqual({ ...defaultConfiguration(), nodeName: "h" });
    expect([...origins.keys()].sort()).toEqual(settings.map(({ path }) => path).sort());
  } finally {
    await rm(directory, { recursive: true });
  }
});

it("the default file explains each setting in lines of at most 100 columns", () => {
  const text = defaultConfigurationYaml();
  const plain = text.replace(/\n *# /g, " ");
  for (const { about, expected } of settings) {
    expect(plain).toContain(about);
    expect(plain).toContain(expected);
  }
  expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
});

it("the JSON schema contains each setting with its default, and allows no additional properties", () => {
  const schema = configurationJsonSchema() as { properties: Record<string, unknown> };
  for (const { path, initial } of settings) {
    let node: unknown = schema;
    for (const name of path.split(".")) {
      expect(node).toMatchObject({ additionalProperties: false });
      node = (node as typeof schema).properties[name];
    }
    expect(node).toMatchObject({ default: initial, description: expect.any(String) });
    const { pattern } = node as { pattern?: string };
    if (pattern !== undefined) expect(String(initial)).toMatch(new RegExp(pattern, "u"));
  }
});

it("docs/configuration.md shows the default file and names each variable", async () => {
  const page = await readFile(join(import.meta.dirname, "../../../../docs/configuration.md"), "utf8");
  const shown = page.split("```yaml\n").map((part) => part.split("```")[0]!);
  expect(shown.some((text) => text.startsWith("apiVersion") && isDefault(text))).toBe(true);
  for (const { path, flagName, envNames } of settings) {
    expect(page).toContain(`\`${path}\``);
    for (const name of flagName ? [`--${flagName}`, ...envNames] : envNames)
      expect(page).toContain(`\`${name}\``);
  }
});

function isDefault(text: string): boolean {
  return JSON.stringify(parse(text)) === JSON.stringify(parse(defaultConfigurationYaml()));
}
