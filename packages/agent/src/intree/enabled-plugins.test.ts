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
