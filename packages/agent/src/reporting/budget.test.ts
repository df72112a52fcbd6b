import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inputs } from "../../../../test/support/sizes.ts";
import { Budget, RESERVED_SHARES } from "./budget.ts";
import type { PluginContent } from "./content.ts";
import { customNodeResource, kindKey, OBJECT_BUDGET_BYTES } from "./kinds.ts";
import { contentOf, field, message } from "./testing/contents.ts";

const object = kindKey(customNodeResource);
// Two fields, because a single one may not exceed the size of an object.
const report = (share: number) => {
  const half = "x".repeat(Math.floor((share / 2) * OBJECT_BUDGET_BYTES) - 10);
  return contentOf(message([field("status", "bulk", half), field("status", "more", half)]));
};
/** A budget whose object has these contents, by plugin. */
const budgetWith = (contents: Record<string, PluginContent>) => {
  const budget = new Budget(object);
  budget.accepted(new Map(Object.entries(contents)));
  return budget;
};
const names = (contents: ReadonlyMap<string, unknown>) => [...contents.keys()].sort();

describe("the budget of an object", () => {
  it("has room for as many new contents as fit, and the largest is quarantined", () => {
    const budget = new Budget(object);
    const contents = new Map([
      ["a", report(0.3)],
      ["b", report(0.5)],
      ["c", report(0.3)],
    ]);
    const { contents: published, held } = budget.publishable(contents);
    expect(names(published)).toEqual(["a", "c"]);
    expect(held).toMatchObject([{ plugin: "b", isNew: true }]);
    expect(held[0]?.message).toBe(
      "its 512 KiB would make the object larger than the limit of 1024 KiB: 305 KiB are left for it; nothing of it is published for now",
    );
    expect(budget.publishable(contents).held).toMatchObject([{ plugin: "b", isNew: false }]);
  });

  it("is exceeded by the content that grew: an unchanged one stays, however large it is", () => {
    const [large, small, grown] = [report(0.6), report(0.1), report(0.5)];
    const budget = budgetWith({ large, other: small });
    const next = new Map([
      ["large", large],
      ["other", grown],
    ]);
    const { contents, held } = budget.publishable(next);
    expect(contents.get("large")).toBe(large);
    expect(contents.get("other")).toBe(small);
    expect(held.map(({ plugin }) => plugin)).toEqual(["other"]);
    expect(held[0]?.message).toMatch(/; its last known good content of 103 KiB stays published$/);
  });

  it("replaces it by the last known good content, if that fits", () => {
    const [small, good, neighbour] = [report(0.1), report(0.2), report(0.5)];
    const budget = budgetWith({ a: good, b: small });
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

  it("is not lowered below what the server accepted last", () => {
    const budget = new Budget(object);
    const [large, small, grown] = [report(0.5), report(0.1), report(0.15)];
    const accepted = new Map([
      ["large", large],
      ["other", small],
    ]);
    budget.accepted(accepted);
    budget.publishable(new Map([...accepted, ["other", grown]]));
    budget.shrink();
    expect(budget.publishable(new Map([...accepted, ["other", grown]])).contents).toEqual(accepted);
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

describe("the budget of an object with reports of arbitrary sizes", () => {
  const plugins = Array.from({ length: 24 }, (_, at) => `p${at}`);
  // Thousandths of the limit. Most reports are small.
  const size = fc.oneof(
    { arbitrary: fc.integer({ min: 0, max: 6 }), weight: 3 },
    fc.integer({ min: 7, max: 1_000 }),
  );
  const step = fc.record({ plugin: fc.nat({ max: plugins.length - 1 }), size });
  const sized = new Map<number, PluginContent>();
  const contentOfSize = (thousandths: number) => {
    const bytes = Math.floor((thousandths / 1_000) * OBJECT_BUDGET_BYTES);
    const known = sized.get(thousandths);
    if (known) return known;
    // A single field. Its value is not used.
    const [field] = report(0.001).fields;
    const content = { fields: [{ ...field!, bytes }], problems: [] };
    sized.set(thousandths, content);
    return content;
  };
  const sizeOf = (content: PluginContent | undefined) => content?.fields[0]?.bytes ?? 0;

  it("publishes content within its plugin's share, and keeps content that did not change", () => {
    const count = fc.integer({ min: 1, max: plugins.length });
    const steps = fc.array(step, { maxLength: 60 });
    fc.assert(
      fc.property(count, steps, (count, steps) => {
        const budget = new Budget(object);
        let published: ReadonlyMap<string, PluginContent> = new Map();
        const contents = new Map<string, PluginContent>();
        for (const { plugin, size } of steps) {
          const changed = plugins[plugin % count]!;
          contents.set(changed, { ...contentOfSize(size) });
          const before = published;
          published = budget.publishable(new Map(contents)).contents;
          const share = OBJECT_BUDGET_BYTES / 8 / Math.max(contents.size, RESERVED_SHARES);
          for (const [name, content] of contents) {
            if (sizeOf(content) <= share) expect(published.get(name)).toBe(content);
            const isKept = name !== changed && before.get(name) === content;
            if (isKept && contents.size <= RESERVED_SHARES) expect(published.get(name)).toBe(content);
          }
          const total = [...published.values()].reduce((sum, content) => sum + sizeOf(content), 0);
          expect(total).toBeLessThanOrEqual(OBJECT_BUDGET_BYTES);
          budget.accepted(published);
        }
      }),
      { numRuns: inputs(2_000) },
    );
  });
});
