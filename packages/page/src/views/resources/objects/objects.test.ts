import { describe, expect, it } from "vitest";
import { kindName, searchFields, troubleCount, valueText } from "./objects.ts";

const field = (path: string, value: string, plugin = "a", others: string[] = []) => ({
  path,
  value,
  plugin,
  others,
});

describe("published objects", () => {
  it("are called by their kind", () => {
    expect(kindName("node.katalyst.kubewharf.io/v1alpha1/CustomNodeResource")).toBe("CustomNodeResource");
    expect(kindName("v1/Node")).toBe("Node");
  });

  it("count what an operator has to look at", () => {
    const quiet = { object: "v1/Node", plugins: [], writes: 1, pending: false };
    const none = { conflicts: [], contested: [], unclaimed: [], quarantined: {} };
    expect(troubleCount({ ...quiet, ...none })).toBe(0);
    expect(
      troubleCount({
        ...quiet,
        conflicts: [{ path: "a", winner: "x", others: ["y"] }],
        contested: [{ path: "a", writers: ["kubectl"], times: 4, plugins: ["x"] }],
        unclaimed: ["b"],
        quarantined: { x: "too long" },
        lastError: "conflict",
      }),
    ).toBe(5);
  });

  it("are searched by every word, in paths, values and plugins", () => {
    const fields = [
      field("status.resources.capacity.cpu", '"4"', "system"),
      field("status.resources.capacity.memory", '"8Gi"', "system", ["Widgets"]),
    ];
    const found = (search: string) => searchFields(fields, search).map(({ path }) => path.split(".").at(-1));
    expect(found("")).toEqual(["cpu", "memory"]);
    expect(found(" CAPACITY 8gi")).toEqual(["memory"]);
    expect(found("widgets")).toEqual(["memory"]);
    expect(found("cpu 8Gi")).toEqual([]);
  });
});

it.each([
  ["spec.properties[memory].propertyQuantity", '"24684092Ki"', "23.5 GiB"],
  ["status.resources.capacity.memory", '"17179869184"', "16 GiB"],
  ["status.resources.capacity.cpu", '"2"', '"2"'],
  ["spec.properties[is_vm].propertyValues", '["true"]', '["true"]'],
  ["status.name", '"web"', '"web"'],
  ["metadata.labels.memory", '"16"', '"16"'],
])("%s with %s is shown as %s", (path, value, text) => {
  expect(valueText({ path, value })).toBe(text);
});
