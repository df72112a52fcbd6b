import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { builtInResources } from "./catalogue/built-in.ts";
import { parseFieldSelector, parseLabelSelector } from "./selectors.ts";

const labels = { app: "web", tier: "1", "example.com/zone": "" };

test.each([
  ["", true],
  ["app=web", true],
  ["app==web", true],
  ["app = web", true],
  ["app=db", false],
  ["app!=db", true],
  ["missing!=x", true],
  ["app in (db, web)", true],
  ["app in (db)", false],
  ["app notin (db,web)", false],
  ["missing notin (x)", true],
  ["app", true],
  ["!app", false],
  ["!missing,app=web", true],
  ["example.com/zone=", true],
  ["example.com/zone in ()", true],
  ["tier>0", true],
  ["tier<1", false],
  ["app in (web,db),tier=1,!missing", true],
  ["constructor", false],
])("label selector %j", (selector, expected) => {
  expect(parseLabelSelector(selector)(labels)).toBe(expected);
});

test.each(["=x", "a=b=c", "a in b", "a in (b", "!", ",", "a b", "a~b"])(
  "label selector %j is refused",
  (selector) => {
    expect(() => parseLabelSelector(selector)).toThrow(
      expect.objectContaining({ status: expect.objectContaining({ code: 400 }) }),
    );
  },
);

describe("label selectors, by their laws", () => {
  const key = fc.constantFrom("a", "b.c/d", "e-f");
  const value = fc.constantFrom("", "x", "y.z");
  const set = fc.dictionary(key, value);
  const matches = (selector: string, of: Record<string, string>) => parseLabelSelector(selector)(of);

  test("each test and its opposite share out all objects", () => {
    fc.assert(
      fc.property(key, value, set, (k, v, of) => {
        expect(matches(`${k}=${v}`, of)).toBe(!matches(`${k}!=${v}`, of));
        expect(matches(`${k} in (${v},q)`, of)).toBe(!matches(`${k} notin (${v},q)`, of));
        expect(matches(k, of)).toBe(!matches(`!${k}`, of));
        expect(matches(`${k}=${v}`, of)).toBe(of[k] === v);
      }),
    );
  });

  test("a comma means and", () => {
    fc.assert(
      fc.property(key, value, key, value, set, (k, v, l, w, of) => {
        expect(matches(`${k}=${v},${l} in (${w})`, of)).toBe(
          matches(`${k}=${v}`, of) && matches(`${l}=${w}`, of),
        );
      }),
    );
  });
});

const pods = builtInResources().find(({ plural }) => plural === "pods")!;
const pod = {
  metadata: { name: "p", namespace: "ns" },
  spec: { nodeName: "n1" },
  status: { phase: "Running" },
};

test.each([
  ["spec.nodeName=n1", true],
  ["spec.nodeName==n1,status.phase!=Failed", true],
  ["spec.nodeName!=n1", false],
  ["metadata.name=p,metadata.namespace=ns", true],
  ["status.podIP=", true],
])("field selector %j", (selector, expected) => {
  expect(parseFieldSelector(selector, pods)(pod)).toBe(expected);
});

test("a field that the kind does not support is refused by name", () => {
  expect(() => parseFieldSelector("spec.other=x", pods)).toThrow("field label not supported: spec.other");
});
