import { describe, expect, it } from "vitest";
import { policySettings, readTyped } from "./edit-setting.ts";
import { valueAt } from "./setting.ts";
import { defaultConfiguration, settings } from "./settings.ts";

const policySetting = (path: string) => policySettings.find((setting) => setting.path === path)!;

describe("settings as texts", () => {
  it("the text of each default is read as the default", () => {
    const configuration = defaultConfiguration();
    for (const setting of settings) {
      const value = valueAt(configuration, setting.path);
      expect([setting.path, readTyped(setting, setting.toText(value))]).toMatchObject([
        setting.path,
        { value },
      ]);
    }
  });

  it("are refused as the agent refuses them", () => {
    expect(readTyped(policySetting("eviction.cooldown"), "5 minutes")).toEqual({
      problem: 'got "5 minutes", expected a duration from 0s to 24h, such as "30s"',
    });
    expect(readTyped(policySetting("eviction.burst"), "many")).toMatchObject({
      problem: expect.stringContaining("a whole number from -1 to 1000"),
    });
    expect(readTyped(policySetting("eviction.taintEffects"), "NoSchedule,NoSchedule")).toMatchObject({
      problem: expect.stringContaining("without duplicates"),
    });
  });

  it("have the value of the file and that of the agent", () => {
    expect(readTyped(policySetting("eviction.cooldown"), " 1m30s ")).toEqual({
      written: "1m30s",
      value: 90_000,
    });
    expect(readTyped(policySetting("eviction.skip.labels"), "a, b/c")).toEqual({
      written: ["a", "b/c"],
      value: ["a", "b/c"],
    });
    expect(readTyped(policySetting("eviction.limits.perOwner"), "0")).toEqual({ written: 0, value: 0 });
  });

  it("the settings of the policy are those of the schema", () => {
    const paths = policySettings.map(({ path }) => path);
    expect(paths).toEqual(settings.map(({ path }) => path).filter((path) => paths.includes(path)));
    expect(paths).toContain("eviction.grace.allowZero");
  });
});
