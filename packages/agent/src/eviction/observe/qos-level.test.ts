import type { QosLevel } from "@nodekeeper/api/decide";
import { describe, expect, it } from "vitest";
import { qosLevelReader } from "./qos-level.ts";

const ours = "katalyst.kubewharf.io/qos_level";
const tier = (value: string) => ({ key: "tier", value });

type Case = [QosLevel, Record<string, string>];

it.each<Case>([
  ["shared_cores", {}],
  ["shared_cores", { tier: "offline" }],
  ["reclaimed_cores", { [ours]: "reclaimed_cores" }],
  ["dedicated_cores", { [ours]: "dedicated_cores" }],
  ["system_cores", { [ours]: "system_cores" }],
  ["unknown", { [ours]: "" }],
  ["unknown", { [ours]: "unknown" }],
  ["unknown", { [ours]: "constructor" }],
])("katalyst's annotation alone: %s for %j", (level, annotations) =>
  expect(qosLevelReader()(annotations)).toBe(level),
);

describe("with annotations of the operator", () => {
  const levelOf = qosLevelReader({
    reclaimed_cores: [tier("offline"), tier("scavenger"), { key: "batch", value: "true" }],
    shared_cores: [tier("online")],
    dedicated_cores: [{ key: "pinned", value: "true" }],
  });

  it.each<Case>([
    ["shared_cores", {}],
    ["reclaimed_cores", { [ours]: "reclaimed_cores" }],
    ["reclaimed_cores", { tier: "offline" }],
    ["reclaimed_cores", { tier: "scavenger", batch: "true" }],
    ["reclaimed_cores", { [ours]: "reclaimed_cores", tier: "offline" }],
    ["shared_cores", { tier: "online" }],
    ["dedicated_cores", { pinned: "true" }],
  ])("%s for %j", (level, annotations) => expect(levelOf(annotations)).toBe(level));

  it.each<[why: string, Record<string, string>]>([
    ["two levels", { batch: "true", pinned: "true" }],
    ["two levels, one by katalyst's annotation", { [ours]: "dedicated_cores", tier: "offline" }],
    ["a level, and another value of an annotation of that level", { tier: "offline", batch: "false" }],
    ["no level, and another value of an annotation of shared_cores", { tier: "nearline" }],
  ])("unknown for %s", (_, annotations) => expect(levelOf(annotations)).toBe("unknown"));

  it("the default for another value of an annotation that shared_cores does not have", () =>
    expect(levelOf({ batch: "false", pinned: "no" })).toBe("shared_cores"));
});

it("a value that states two levels states none that is known", () =>
  expect(qosLevelReader({ reclaimed_cores: [tier("x")], dedicated_cores: [tier("x")] })({ tier: "x" })).toBe(
    "unknown",
  ));
