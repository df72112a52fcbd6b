import { readFileSync } from "node:fs";
import { join } from "node:path";
import { configurationJsonSchema, readLeaf, setAt, settings } from "@nodekeeper/api/settings";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { otherValue, settingValues } from "../support/setting-values.ts";

const chart = join(import.meta.dirname, "../../deploy/helm/nodekeeper");
const read = (path: string) => JSON.parse(readFileSync(join(chart, path), "utf8"));
const valuesSchema = read("values.schema.json");
const { durations, sizes, restart } = read("files/settings.json");

function configurationWith(path: string, value: unknown): object {
  const configuration = {};
  setAt(configuration, path, value);
  return configuration;
}

describe("the schemas of the configuration", () => {
  const ajv = new Ajv({ allowUnionTypes: true, strict: false });
  const { $schema: _, ...agentSchema } = configurationJsonSchema();
  const acceptedByChart = ajv.compile(valuesSchema);
  const acceptedByAgent = ajv.compile(agentSchema);
  const header = { apiVersion: "nodekeeper.dev/v1alpha1", kind: "AgentConfiguration" };

  it.each(settings.map((setting) => [setting.path, setting] as const))(
    "%s: they accept the values that the agent accepts, apart from ranges",
    (path, setting) => {
      const hasRange = durations[path] !== undefined || sizes[path] !== undefined;
      expect(hasRange).toBe(setting.parsedSchema !== undefined);
      expect(readLeaf(setting, otherValue(setting))).toBeDefined();
      for (const value of settingValues) {
        const about = JSON.stringify(value).slice(0, 100);
        const isRead = readLeaf(setting, value) !== undefined;
        const isAccepted = acceptedByChart({ config: configurationWith(path, value) });
        expect([about, acceptedByAgent({ ...header, ...configurationWith(path, value) })]).toEqual([
          about,
          isAccepted,
        ]);
        if (!isAccepted || !hasRange) expect([about, isAccepted]).toEqual([about, isRead]);
      }
    },
  );

  it("apply to values that become settings", () => {
    expect(acceptedByChart({ reporting: { inTreePlugins: ["-kubelet-reporter-plugin"] } })).toBe(true);
    expect(acceptedByChart({ reporting: { inTreePlugins: ["-kubelet"] } })).toBe(false);
    expect(acceptedByChart({ lifecycle: { runtimeEndpoint: "containerd" } })).toBe(false);
  });

  it("has patterns that Helm can compile: Go has no lookaround and no backreferences", () => {
    const patterns = JSON.stringify(valuesSchema).match(/"pattern":"(?:[^"\\]|\\.)*"/g)!;
    expect(patterns.length).toBeGreaterThan(100);
    expect(patterns.filter((pattern) => /\(\?[^:]|\\\\[1-9]/.test(pattern))).toEqual([]);
  });

  it("lists the settings whose checksum is an annotation of the pods", () => {
    expect(restart).toEqual(settings.filter(({ isLive }) => !isLive).map(({ path }) => path));
  });
});
