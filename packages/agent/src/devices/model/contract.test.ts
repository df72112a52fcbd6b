import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { contractOf, serviceOf } from "./contract.ts";

const [alpha1, alpha2] = ["nodekeeper.devices.v1alpha1", "nodekeeper.devices.v1alpha2"] as const;

test.each([
  { versions: [alpha1], expected: alpha1 },
  { versions: [alpha2], expected: alpha2 },
  { versions: [alpha1, alpha2], expected: alpha2 },
  { versions: ["v1.DRAPlugin", `${alpha2}.DevicePreparation`], expected: undefined },
])("the contract of $versions is $expected", ({ versions, expected }) => {
  expect(contractOf(versions)).toBe(expected);
});

test.each([
  { versions: [alpha2, `${alpha1}.DevicePreparation`], expected: `${alpha1}.DevicePreparation` },
  {
    versions: [`${alpha1}.DevicePreparation`, `${alpha2}.DevicePreparation`],
    expected: `${alpha2}.DevicePreparation`,
  },
  { versions: [alpha2], expected: undefined },
])("DevicePreparation of $versions is $expected", ({ versions, expected }) => {
  expect(serviceOf(versions, { name: "DevicePreparation" })).toBe(expected);
});

// The agent reads and writes the messages of v1alpha1 as those of v1alpha2.
describe.each(["api.proto", "preparation.proto"])("%s", (file) => {
  const older = declarationsOf("v1alpha1", file);
  const newer = declarationsOf("v1alpha2", file);

  it("has everything of v1alpha1 in v1alpha2, with the same numbers", () => {
    expect(older.length).toBeGreaterThan(20);
    expect(newer).toEqual(expect.arrayContaining(older));
  });
});

/** Fields and calls, each with the message or service that declares it. */
function declarationsOf(version: string, file: string): string[] {
  const path = join(import.meta.dirname, "../../../../../proto/nodekeeper/devices", version, file);
  let within = "";
  return readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => {
      within = /^(?:message|service) (\w+)/.exec(line)?.[1] ?? within;
      return /^ {2}(?:rpc|[\w.<>, ]+ = \d+;)/.test(line) ? [`${within}: ${line.trim()}`] : [];
    });
}
