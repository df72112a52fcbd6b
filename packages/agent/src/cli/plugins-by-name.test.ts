import { describe, expect, it } from "vitest";
import type { PluginRow } from "./plugin-row.ts";
import { problemOf, shownState } from "./plugin-row.ts";
import { pluginsByName } from "./plugins-by-name.ts";

const row = (given: Partial<PluginRow>): PluginRow => ({
  ...{ name: "p", type: "ReporterPlugin", state: "registered", versions: [], attempts: 1, contentBytes: 0 },
  ...{ registrationSocket: "/p.sock", problems: [], ...given },
});

describe("pluginsByName", () => {
  it.each<[string, Partial<PluginRow>[], object]>([
    ["one socket is its row", [{}], { name: "p", state: "registered", problem: "" }],
    [
      "types that a plugin serves are in one row",
      [
        { contentBytes: 5, contentAt: 9 },
        { type: "EvictionPlugin", registrationSocket: "/e.sock" },
      ],
      { type: "ReporterPlugin,EvictionPlugin", contentBytes: 5, contentAt: 9, problem: "" },
    ],
    [
      "a type that fails makes it failing",
      [{}, { type: "EvictionPlugin", error: "no answer", errorId: "NK1603" }],
      { state: "failing", problem: "NK1603: no answer" },
    ],
    [
      "a socket of an earlier process is a remark",
      [{ state: "superseded", registrationSocket: "/old.sock" }, {}],
      { type: "ReporterPlugin", state: "registered", problem: "/old.sock: superseded" },
    ],
    [
      "a second plugin of the name is refused, and the first one's problem",
      [{}, { state: "refused", registrationSocket: "/b.sock", error: "the name is taken" }],
      { state: "refused", problem: "the name is taken" },
    ],
  ])("%s", (_, rows, expected) => {
    const all = pluginsByName(rows.map(row));
    expect(all).toHaveLength(1);
    const [one] = all;
    expect({ ...one!, state: shownState(one!), problem: problemOf(one!) }).toMatchObject(expected);
  });

  it("keeps sockets that have named no plugin apart", () => {
    const rows = [row({ name: "", registrationSocket: "/a" }), row({ name: "", registrationSocket: "/b" })];
    expect(pluginsByName(rows)).toEqual(rows);
  });
});
