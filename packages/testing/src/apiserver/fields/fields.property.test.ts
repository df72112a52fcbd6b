import type { KubeObject } from "@nodekeeper/core/kube";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { difference, type FieldSet, intersection, isEmpty, listPaths, union } from "./field-set.ts";
import { fieldsOf } from "./fields-of.ts";
import { applyConfiguration, recordUpdate, type Writer } from "./managed-fields.ts";
import { listBy, map } from "./schema.ts";

const schema = map({ status: map({ conditions: listBy("type") }) });

const writer = (manager: string, operation: Writer["operation"] = "Apply"): Writer => ({
  manager,
  operation,
  apiVersion: "v1",
  time: "2024-01-01T00:00:00Z",
});

const leaf = fc.oneof(fc.constantFrom("x", "y", 1, true), fc.array(fc.constantFrom(1, 2), { maxLength: 2 }));
const field = (prefix: string) =>
  fc.constantFrom("a", "b", "c", "__proto__", "constructor").map((name) => prefix + name);

/** A configuration whose fields all begin with a prefix, so that two prefixes have nothing in common. */
const configuration = (prefix: string): fc.Arbitrary<KubeObject> =>
  fc.record({
    spec: fc.dictionary(field(prefix), fc.oneof(leaf, fc.dictionary(field(""), leaf, { maxKeys: 3 })), {
      maxKeys: 4,
    }),
    status: fc.record({
      conditions: fc
        .uniqueArray(field(prefix), { maxLength: 3 })
        .map((types) => types.map((type) => ({ type, status: "True" }))),
    }),
    metadata: fc.record({ labels: fc.dictionary(field(prefix), fc.constantFrom("1", "2"), { maxKeys: 2 }) }),
  }) as unknown as fc.Arbitrary<KubeObject>;

const bare: KubeObject = { metadata: {} };
const apply = (live: KubeObject, config: KubeObject, manager: string, force = false) =>
  applyConfiguration(live, config, writer(manager), schema, force);

/** Conditions by type and sorted entries: what two orders of arrival must agree on. */
function normal(object: KubeObject): unknown {
  const copy = JSON.parse(JSON.stringify(object));
  copy.status?.conditions?.sort((a: { type: string }, b: { type: string }) => (a.type < b.type ? -1 : 1));
  return copy;
}

describe("server-side apply", () => {
  test("managers with disjoint fields end equal in any order", () => {
    fc.assert(
      fc.property(configuration("p"), configuration("q"), (p, q) => {
        const pq = apply(apply(bare, p, "p"), q, "q");
        const qp = apply(apply(bare, q, "q"), p, "p");
        expect(normal(pq)).toEqual(normal(qp));
      }),
    );
  });

  test("is idempotent", () => {
    fc.assert(
      fc.property(configuration("p"), configuration("q"), (p, q) => {
        const once = apply(apply(bare, p, "p"), q, "q");
        expect(apply(once, q, "q")).toEqual(once);
        expect(apply(once, p, "p")).toEqual(once);
      }),
    );
  });

  test("an empty configuration removes all that its manager alone applied", () => {
    fc.assert(
      fc.property(configuration("p"), configuration("q"), configuration("p"), (p, q, later) => {
        const alone = apply(bare, q, "q");
        const both = apply(apply(alone, p, "p"), later, "p");
        const left = apply(both, bare, "p");
        expect(leaves(left)).toEqual(leaves(alone));
        expect(left.metadata.managedFields?.map(({ manager }) => manager) ?? []).not.toContain("p");
      }),
    );
  });

  test("with force the configuration is in the object, and every field has an owner", () => {
    fc.assert(
      fc.property(configuration("p"), configuration("p"), (p, q) => {
        const forced = apply(apply(bare, p, "p"), q, "q", true);
        const owned = (forced.metadata.managedFields ?? [])
          .map(({ fieldsV1 }) => fieldsV1 as FieldSet)
          .reduce(union, {});
        const { metadata: _metadata, ...content } = forced;
        expect(isEmpty(difference(fieldsOf(content, schema), owned))).toBe(true);
        expect(apply(forced, q, "q")).toEqual(forced);
      }),
    );
  });

  test("a plain write owns what it changed, and no other manager does", () => {
    fc.assert(
      fc.property(configuration("p"), configuration("p"), (p, q) => {
        const live = apply(bare, p, "p");
        const { managedFields } = live.metadata;
        const next = recordUpdate(
          live,
          { ...q, metadata: { ...q.metadata, ...(managedFields ? { managedFields } : {}) } },
          writer("u", "Update"),
          schema,
        );
        const sets = (next.metadata.managedFields ?? []).map(({ fieldsV1 }) => fieldsV1 as FieldSet);
        if (sets.length === 2) expect(listPaths(intersection(sets[0]!, sets[1]!))).toEqual([]);
      }),
    );
  });
});

/** Paths and values of an object's leaves; a map or list that is merely empty does not count. */
function leaves(object: KubeObject): string[] {
  const found: string[] = [];
  const visit = (value: unknown, path: string) => {
    if (
      typeof value === "object" &&
      value !== null &&
      !(Array.isArray(value) && typeof value[0] !== "object")
    ) {
      for (const [name, below] of Object.entries(value)) visit(below, `${path}/${name}`);
    } else found.push(`${path}=${JSON.stringify(value)}`);
  };
  const { managedFields: _managed, ...metadata } = object.metadata;
  visit({ ...object, metadata }, "");
  return found.filter((line) => !line.endsWith("=[]")).sort();
}

describe("field sets", () => {
  const sets = configuration("").map((object) => fieldsOf(object, schema));
  const members = (set: FieldSet) => new Set(listPaths(set));

  test("union, difference and intersection are those of their members", () => {
    fc.assert(
      fc.property(sets, sets, (a, b) => {
        const [inA, inB] = [members(a), members(b)];
        expect(members(union(a, b))).toEqual(new Set([...inA, ...inB]));
        expect(members(difference(a, b))).toEqual(new Set([...inA].filter((path) => !inB.has(path))));
        expect(members(intersection(a, b))).toEqual(new Set([...inA].filter((path) => inB.has(path))));
      }),
    );
  });
});
