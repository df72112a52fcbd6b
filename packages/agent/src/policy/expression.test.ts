import { describe, expect, it } from "vitest";
import { MOST_STEPS } from "./cost.ts";
import { Compiler, LONGEST_EXPRESSION } from "./expression.ts";
import { ExpressionError } from "./expression-error.ts";
import { type FieldTree, nodeFields, podFields } from "./fields.ts";
import { nodeVariable } from "./node-snapshot.ts";
import { snapshotAt } from "./testing/policies.ts";

const ofNode = new Compiler({ node: nodeFields });
const ofPod = new Compiler({ pod: podFields });
const { node } = nodeVariable(snapshotAt(0), [], 0);
const pod = {
  name: "web-1",
  namespace: "shop",
  labels: { app: "web", "example.com/tier": "batch" },
  annotationKeys: ["example.com/a", "example.com/b"],
  qosClass: "Burstable",
  qosLevel: "shared_cores",
  priority: 100,
  requests: { cpu: 0.5, memory: 1024, ephemeralStorage: 512 },
  usage: { cpu: 1.5, memory: 4096, workingSet: 3072, rss: 2048, disk: 9, inodes: 8, pids: 7 },
  age: 90,
  ownerKind: "ReplicaSet",
};

function errorOf(work: () => unknown): ExpressionError {
  try {
    work();
  } catch (error) {
    if (error instanceof ExpressionError) return error;
    throw error;
  }
  throw new Error("it was taken");
}

function leavesOf(tree: FieldTree, path: string): string[] {
  return Object.entries(tree).flatMap(([name, field]) =>
    field === "double"
      ? [`${path}.${name}`]
      : typeof field === "object"
        ? leavesOf(field, `${path}.${name}`)
        : [],
  );
}

describe("what expressions read", () => {
  it.each(leavesOf(nodeFields, "node"))("%s is a number", (path) => {
    const formula = ofNode.formula(path);
    expect(formula.reads).toEqual([path]);
    expect(formula.evaluate({ node })).toEqual({ value: expect.any(Number) });
  });

  it.each([
    ["pod.name", '"web-1"'],
    ["pod.namespace", '"shop"'],
    ["pod.labels.app", '"web"'],
    ['pod.labels["example.com/tier"]', '"batch"'],
    ["pod.annotationKeys", '["example.com/a", "example.com/b"]'],
    ["pod.qosClass", '"Burstable"'],
    ["pod.qosLevel", '"shared_cores"'],
    ["pod.priority", "100"],
    ["pod.requests.cpu", "0.5"],
    ["pod.requests.memory", 'quantity("1Ki")'],
    ["pod.usage.cpu", "1.5"],
    ["pod.usage.memory", 'quantity("4Ki")'],
    ["pod.usage.workingSet", 'quantity("3Ki")'],
    ["pod.usage.rss", 'quantity("2Ki")'],
    ["pod.age", "90"],
    ["pod.ownerKind", '"ReplicaSet"'],
  ])("%s is %s", (field, value) => {
    expect(ofPod.condition(`${field} == ${value}`).evaluate({ pod })).toEqual({ value: true });
    expect(ofPod.condition(`${field} != ${value}`).evaluate({ pod })).toEqual({ value: false });
  });

  it("all fields are known before it runs, also those it may not come to", () => {
    const text = "node.cpu.usage > 2 && (node.psi.memory.some.avg10 > 1 || node.pids.max < 5)";
    expect(ofNode.condition(text).reads).toEqual([
      "node.cpu.usage",
      "node.pids.max",
      "node.psi.memory.some.avg10",
    ]);
  });

  it("a name in brackets is a field like one behind a point", () => {
    expect(ofNode.formula('node["memory"]["total"]').reads).toEqual(["node.memory.total"]);
  });
});

describe("functions", () => {
  it.each<[string, number]>([
    ['quantity("100Mi")', 104_857_600],
    ['quantity("500m")', 0.5],
    ["percent(10, 50)", 5],
    ["percent(2.5, 200.0)", 5],
    ["min(3, 2.5)", 2.5],
    ["max(3, 2.5)", 3],
    ["pod.usage.memory / 2", 2048],
    ["2 * pod.usage.cpu - 1", 2],
    ["-pod.priority", -100],
    ["pod.labels.size()", 2],
    ["size(pod.name)", 5],
    ["double(7) / 2", 3.5],
    ['pod.qosClass == "BestEffort" ? 1 : 0', 0],
  ])("%s is %d", (text, value) => {
    expect(ofPod.formula(text).evaluate({ pod })).toEqual({ value });
  });

  it.each<[string, boolean]>([
    ['pod.name.startsWith("web")', true],
    ['pod.name.endsWith("web")', false],
    ['pod.name.contains("b-")', true],
    ['pod.name.glob("web-?")', true],
    ['pod.name.glob("w*b-*1")', true],
    ['pod.name.glob("web")', false],
    ["has(pod.labels.app) && !has(pod.labels.other)", true],
    ['"app" in pod.labels', true],
    ['pod.annotationKeys.exists(key, key.startsWith("example.com/"))', true],
    ['pod.annotationKeys.all(key, key == "example.com/a")', false],
    ["pod.labels.exists(key, pod.labels[key] == 'batch')", true],
    ['pod.namespace in ["shop", "batch"]', true],
    ["pod.annotationKeys.filter(key, key.contains('a')).size() == 2", true],
    ["pod.annotationKeys.map(key, key.size()).exists_one(size, size > 5)", false],
  ])("%s is %s", (text, value) => {
    expect(ofPod.condition(text).evaluate({ pod })).toEqual({ value });
  });
});

describe("wrong expressions are refused, with the place", () => {
  it.each<[string, number, string]>([
    ["", 0, "is empty"],
    ["node.memory.total >", 19, "EOF"],
    ["node.memory.total > 1 node", 22, "Unexpected"],
    ["node.memory.totl > 1", 12, "there is no node.memory.totl; its fields are: total, available"],
    ["1 > 2 || node.disk > 1", 14, "there is no node.disk"],
    ["node.memory > 1", 5, "node.memory has no value of its own"],
    ['node["mem" + "ory"].total > 1', 5, "node[...] must name a field"],
    ["nod.memory.total > 1", 0, "Unknown variable: nod"],
    ["pod.age > 1", 0, "Unknown variable: pod"],
    ["node.memory.total", 0, "must be true or false, and is of type double"],
    ['node.memory.total > "1"', 0, "no such overload: double > string"],
    ['node.memory.total > quantity("1Gx")', 29, '"1Gx" is not a quantity'],
    ['node.memory.total > quantity("1" + "Gi")', 20, "takes one text in quotes"],
    ['node.memory.total > 1 && "x".split(",") == []', 29, ".split() is not supported"],
    ["cel.bind(x, node.memory.total, x > 1)", 4, ".bind() is not supported"],
    ['timestamp("2026-01-01T00:00:00Z") == 1', 0, "timestamp() is not supported"],
    ["[1].all(node, node > 0)", 8, "node has no value of its own"],
    ["\nnode.cpu.usage >\n  node.cpu.cors", 29, "there is no node.cpu.cors"],
  ])("%j at %d: %s", (text, offset, message) => {
    const error = errorOf(() => ofNode.condition(text));
    expect(error.message).toContain(message);
    expect(error.offset).toBe(offset);
  });

  it("a formula must be a number", () => {
    expect(errorOf(() => ofNode.formula("node.cpu.usage > 1")).message).toBe(
      "must be a number, and is of type bool",
    );
    expect(errorOf(() => ofPod.formula("pod.name")).message).toBe("must be a number, and is of type string");
  });
});

describe("a failure when it runs is reported", () => {
  it.each([
    ["1 / 0", "division by zero"],
    ["pod.priority / 0", "is Infinity"],
    ["0.0 / 0.0", "is NaN"],
    ["int(pod.labels.app)", "int() type error"],
    ["size(pod.labels.absent)", "No such key: absent"],
    ["9223372036854775807 + 1", "overflow"],
  ])("%s: %s", (text, problem) => {
    expect(ofPod.formula(text).evaluate({ pod })).toEqual({ problem: expect.stringContaining(problem) });
  });

  it("a label named like a property of objects is absent", () => {
    expect(
      ofPod.condition('"toString" in pod.labels || has(pod.labels.constructor)').evaluate({ pod }),
    ).toEqual({
      value: false,
    });
  });
});

describe("cost", () => {
  it.each([
    "pod.annotationKeys.all(a, pod.annotationKeys.all(b, pod.annotationKeys.all(c, a == b || b == c)))",
    "pod.labels.all(a, pod.labels.all(b, a in pod.labels))",
    `[${"1,".repeat(63)}1].all(a, [${"1,".repeat(63)}1].all(b, [${"1,".repeat(63)}1].all(c, a == b)))`,
    `["a"]${".map(x, x + x)".repeat(30)}.size() > 0`,
    `[["a"]]${".map(x, x + x)".repeat(30)}.size() > 0`,
  ])("%s is refused", (text) => {
    expect(errorOf(() => ofPod.condition(text)).message).toMatch(
      /takes up to .* steps, more than|Exceeded max/,
    );
  });

  it("long texts, deep ones and long lists are refused", () => {
    const long = `pod.age > 1${" ".repeat(LONGEST_EXPRESSION)}`;
    expect(errorOf(() => ofPod.condition(long)).message).toContain("characters, more than 2000");
    expect(() => ofPod.condition(`${"!(".repeat(200)}true${")".repeat(200)}`)).toThrow(ExpressionError);
    expect(() => ofPod.condition(`1 in [${"1,".repeat(100)}1]`)).toThrow(ExpressionError);
    expect(() => ofPod.formula(Array(300).fill("1").join("+"))).toThrow(ExpressionError);
  });

  it("one loop over what a pod has costs far less than the limit", () => {
    const { steps } = ofPod.condition('pod.annotationKeys.exists(key, key.startsWith("example.com/"))');
    expect(steps).toBeLessThan(MOST_STEPS / 50);
  });

  it("the worst that is let through comes to its end", () => {
    const keys = Array.from({ length: 128 }, (_, at) => `${"k".repeat(300)}${at}`);
    const worst = ofPod.condition("pod.annotationKeys.all(a, a in pod.annotationKeys)");
    expect(worst.steps).toBeGreaterThan(MOST_STEPS / 4);
    expect(worst.evaluate({ pod: { annotationKeys: keys } })).toEqual({ value: true });
  });
});

describe("patterns", () => {
  it("regular expressions are refused, whatever they look like", () => {
    const error = errorOf(() => ofPod.condition('pod.name.matches("(a+)+$")'));
    expect(error.message).toBe(
      'matches() is not supported because the run time of a regular expression is unbounded; use glob("web-*")',
    );
    expect(error.offset).toBe(9);
  });

  it("no glob backtracks without end", () => {
    const name = `${"a".repeat(252)}b`;
    for (const pattern of ["(a+)+$", `${"a*".repeat(120)}c`, `${"*a".repeat(120)}c`, "*".repeat(250)]) {
      const condition = ofPod.condition(`pod.name.glob("${pattern}")`);
      expect(condition.evaluate({ pod: { name } })).toEqual({ value: pattern.startsWith("**") });
    }
  });
});
