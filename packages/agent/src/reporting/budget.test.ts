import { describe, expect, it } from "vitest";
import { Budget } from "./budget.ts";
import { customNodeResource, kindKey, OBJECT_BUDGET_BYTES } from "./kinds.ts";
import { contentOf, field, message } from "./testing/contents.ts";

const object = kindKey(customNodeResource);
// In two fields: of one alone, no more is taken than the object has room for.
const report = (share: number) => {
  const half = "x".repeat(Math.floor((share / 2) * OBJECT_BUDGET_BYTES) - 10);
  return contentOf(message([field("status", "bulk", half), field("status", "more", half)]));
};
const names = (contents: ReadonlyMap<string, unknown>) => [...contents.keys()].sort();

describe("the budget of an object", () => {
  it("is shared by all contributors, and the largest is quarantined", () => {
    const budget = new Budget(object);
    const contents = new Map([
      ["a", report(0.3)],
      ["b", report(0.5)],
      ["c", report(0.3)],
    ]);
    const { contents: published, held } = budget.publishable(contents);
    expect(names(published)).toEqual(["a", "c"]);
    expect(held).toMatchObject([{ plugin: "b", isNew: true }]);
    expect(budget.publishable(contents).held).toMatchObject([{ plugin: "b", isNew: false }]);
  });

  it("replaces it by the last known good content, if that fits", () => {
    const budget = new Budget(object);
    const [small, good, neighbour] = [report(0.1), report(0.2), report(0.5)];
    budget.accepted(
      new Map([
        ["a", good],
        ["b", small],
      ]),
    );
    const published = budget.publishable(
      new Map([
        ["a", report(1.9)],
        ["b", neighbour],
      ]),
    ).contents;
    expect(published.get("a")).toBe(good);
    expect(published.get("b")).toBe(neighbour);
  });

  it("counts members of maps twice, since managedFields list them again", () => {
    const budget = new Budget(object);
    const members = Object.fromEntries(
      Array.from({ length: 15_000 }, (_, at) => [`example.com/resource-name-${at}`, "1"]),
    );
    const content = contentOf(message([field("status", "resources", { capacity: members })]));
    expect(Buffer.byteLength(JSON.stringify(content.fields[0]?.value))).toBeLessThan(
      0.7 * OBJECT_BUDGET_BYTES,
    );
    expect(names(budget.publishable(new Map([["a", content]])).contents)).toEqual([]);
  });

  it("does not count fields of other objects", () => {
    const budget = new Budget("v1/Node");
    expect(budget.publishable(new Map([["a", report(1.9)]])).held).toEqual([]);
  });

  it("shrinks with each rejection by the server, down to a minimum", () => {
    const budget = new Budget(object);
    const contents = new Map([
      ["a", report(0.4)],
      ["b", report(0.01)],
    ]);
    for (let refusals = 0; refusals < 30; refusals++) {
      budget.publishable(contents);
      budget.shrink();
    }
    expect(names(budget.publishable(contents).contents)).toEqual(["b"]);
    budget.reset();
    expect(names(budget.publishable(contents).contents)).toEqual(["a", "b"]);
  });
});
