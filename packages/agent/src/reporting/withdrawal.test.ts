import { describe, expect, it } from "vitest";
import { withdrawal } from "./withdrawal.ts";

const gpus = "example.com/gpus";
const fpgas = "example.com/fpgas";

describe("withdrawal from a Node's status", () => {
  const owned = {
    "f:status": {
      "f:capacity": { [`f:${gpus}`]: {}, [`f:${fpgas}`]: {} },
      "f:allocatable": { ".": {}, [`f:${gpus}`]: {} },
    },
  };
  const node = (entry: object) => ({
    metadata: {
      uid: "u",
      managedFields: [{ manager: "nodekeeper", operation: "Apply", subresource: "status", ...entry }],
    },
  });
  const live = node({ fieldsV1: owned });

  it("removes each quantity that is no longer desired, with the Node's UID", () => {
    const fields = { status: { capacity: { [fpgas]: "1" } } };
    expect(withdrawal(live, "nodekeeper", fields)).toEqual({
      metadata: { uid: "u" },
      status: { capacity: { [gpus]: null }, allocatable: { [gpus]: null } },
    });
    expect(withdrawal(live, "nodekeeper", {})?.status).toEqual({
      capacity: { [gpus]: null, [fpgas]: null },
      allocatable: { [gpus]: null },
    });
  });

  it("leaves what another manager owns too, as an apply does", () => {
    const other = { manager: "kubelet", operation: "Update", subresource: "status" };
    const shared = { ...other, fieldsV1: { "f:status": { "f:capacity": { [`f:${gpus}`]: {} } } } };
    const managedFields = [...live.metadata.managedFields, shared];
    expect(withdrawal({ metadata: { ...live.metadata, managedFields } }, "nodekeeper", {})?.status).toEqual({
      capacity: { [fpgas]: null },
      allocatable: { [gpus]: null },
    });
  });

  it.each([
    [
      "all are still desired",
      live,
      { capacity: { [gpus]: "1", [fpgas]: "1" }, allocatable: { [gpus]: "1" } },
    ],
    ["another client applied them", node({ fieldsV1: owned, manager: "other" }), {}],
    ["they were not applied", node({ fieldsV1: owned, operation: "Update" }), {}],
    ["they are not of the status", node({ fieldsV1: owned, subresource: "" }), {}],
    ["the entry is empty", node({}), {}],
    ["there is no entry", { metadata: {} }, {}],
  ])("is nothing where %s", (_, object, status) => {
    expect(withdrawal(object, "nodekeeper", { status: { ...status } })).toBeUndefined();
  });
});
