import { describe, expect, it } from "vitest";
import { groupPlugins } from "./groups.ts";
import { pluginRow } from "./testing/rows.ts";
import { adviceText, stateText, summaryText, typeText } from "./words.ts";

describe("words of plugins", () => {
  it("a registered plugin whose last call failed is named so", () => {
    expect(stateText({ state: "registered", error: "deadline" })).toBe("registered, its last call failed");
    expect(stateText({ state: "unavailable", error: "no process listens" })).toBe(
      "unavailable: no process listens on its socket",
    );
    expect(stateText({ state: "a state of a newer agent" })).toBe("a state of a newer agent");
  });

  it("counts by health, without those that there are none of", () => {
    const plugins = groupPlugins([
      pluginRow({ name: "a" }),
      pluginRow({ name: "b", error: "x" }),
      pluginRow({ name: "c" }),
    ]);
    expect(summaryText(plugins)).toBe("3 plugins: 1 failing, 2 healthy.");
    expect(summaryText(plugins.slice(0, 1))).toBe("1 plugin: 1 failing.");
  });

  it("has what to do about each trouble, and nothing where there is none", () => {
    const advice = (changed: Parameters<typeof pluginRow>[0]) => adviceText({ row: pluginRow(changed) });
    expect(advice({})).toBeUndefined();
    expect(advice({ state: "refused" })).toMatch(/what is accepted/);
    expect(advice({ state: "lost", error: "exited" })).toMatch(/grace period/);
    expect(advice({ problems: ["status.x: no"] })).toMatch(/next report/);
    expect(advice({ error: "deadline" })).toMatch(/plugin's log/);
  });

  it("a type that is not known yet is named so", () => {
    expect([typeText("DRAPlugin"), typeText(""), typeText("Other")]).toEqual([
      "device driver",
      "type not known yet",
      "Other",
    ]);
  });
});
