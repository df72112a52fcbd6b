import { expect, it } from "vitest";
import { enabledPlugins } from "./enabled-plugins.ts";

const known = ["system", "kubelet", { name: "trial", onByDefault: false }];

it.each([
  [[], []],
  [["*"], ["system", "kubelet"]],
  [["*", "-kubelet"], ["system"]],
  [["-kubelet", "*"], ["system"]],
  [
    ["*", "trial"],
    ["system", "kubelet", "trial"],
  ],
  [["trial"], ["trial"]],
  [["-system"], []],
  [["system", "-system"], ["system"]],
  [["-system", "system"], []],
])("%j enables %j", (patterns, enabled) => expect(enabledPlugins(known, patterns)).toEqual(enabled));

it.each(["sytem", "-sytem", "", "-", "--system", "-*"])("refuses %j and names the known ones", (pattern) => {
  expect(() => enabledPlugins(known, ["*", pattern])).toThrow(
    expect.objectContaining({
      id: "NK1002",
      message: expect.stringMatching(/unknown in-tree plugin.*kubelet, system, trial/),
    }),
  );
});
