import { describe, expect, it } from "vitest";
import { groupPlugins, type PluginRow } from "./groups.ts";
import { pluginRow } from "./testing/rows.ts";

const shown = (rows: PluginRow[]) =>
  groupPlugins(rows).map(({ row, health }) => `${row.name || row.registrationSocket}: ${health}`);

describe("groupPlugins", () => {
  it("has those that fail first, then refused content, then those that register, then the rest by name", () => {
    expect(
      shown([
        pluginRow({ name: "b" }),
        pluginRow({ name: "a" }),
        pluginRow({ name: "d", state: "registering" }),
        pluginRow({ name: "c", problems: ["status.x: refused"] }),
        pluginRow({ name: "z", error: "deadline" }),
        pluginRow({ name: "y", state: "lost" }),
      ]),
    ).toEqual(["y: failing", "z: failing", "c: impaired", "d: changing", "a: healthy", "b: healthy"]);
  });

  it("is one plugin with the socket that serves, where another of the same name was superseded", () => {
    const [only, ...rest] = groupPlugins([
      pluginRow({ name: "a", state: "superseded", registrationSocket: "/old.sock" }),
      pluginRow({ name: "a", registrationSocket: "/new.sock" }),
    ]);
    expect(rest).toEqual([]);
    expect(only).toMatchObject({ health: "healthy", row: { registrationSocket: "/new.sock" } });
    expect(only!.others.map(({ registrationSocket }) => registrationSocket)).toEqual(["/old.sock"]);
  });

  it("is impaired where a second socket of a plugin is refused", () => {
    const rows = [
      pluginRow({ name: "a" }),
      pluginRow({ name: "a", state: "refused", registrationSocket: "/2.sock" }),
    ];
    expect(groupPlugins(rows)).toMatchObject([{ health: "impaired", row: { state: "registered" } }]);
  });

  it("keeps types of one name, and sockets without a name, apart", () => {
    expect(
      shown([
        pluginRow({ name: "a", type: "EvictionPlugin" }),
        pluginRow({ name: "a" }),
        pluginRow({ name: "", state: "failed", registrationSocket: "/x.sock" }),
        pluginRow({ name: "", state: "failed", registrationSocket: "/y.sock" }),
      ]),
    ).toEqual(["/x.sock: failing", "/y.sock: failing", "a: healthy", "a: healthy"]);
  });
});
