import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeProblem } from "./policy-problem.ts";
import { readPolicies } from "./read-policies.ts";
import { policyOf } from "./testing/policies.ts";

const simple = "name: a\ntype: hard\nwhen: node.cpu.usage > 0.9\nrank: [-pod.priority]";

function problemsOf(text: string): string[] {
  return readPolicies("p.yaml", text).problems.map(describeProblem);
}

describe("a policy", () => {
  it("whose name expands without bound is refused, and the others run", () => {
    const bomb = Array.from({ length: 8 }, (_, at) => `&l${at + 1} [${Array(9).fill(`*l${at}`).join(", ")}]`);
    const text = `policies:
- { name: one, type: hard, when: node.cpu.usage > 0.9, rank: [1] }
- { description: [&l0 x, ${bomb.join(", ")}], name: *l8 }
- { name: two, type: hard, when: node.cpu.usage > 0.9, rank: [1] }`;
    const { policies, problems } = readPolicies("p.yaml", text);
    expect(policies.map(({ name }) => name)).toEqual(["one", "two"]);
    expect(problems).toHaveLength(1);
  });

  it("with all of its fields", () => {
    const policy = policyOf(`
name: memory
description: When memory runs out.
type: soft
when: node.memory.available < quantity("1Gi")
observed: node.memory.available
operator: lessThan
threshold: quantity("1Gi")
minimumReclaim: percent(5, node.memory.total)
gracePeriod: 1m30s
scope: node-memory
condition: { target: customNodeResource, name: Full, effects: [reclaimed_cores/NoSchedule] }
pods: pod.qosClass != "Guaranteed"
rank: [-pod.priority, pod.usage.rss, 5]
terminationGracePeriod: 2s`);
    expect(policy).toMatchObject({
      name: "memory",
      description: "When memory runs out.",
      type: "soft",
      operator: "lessThan",
      gracePeriodMs: 90_000,
      scope: "node-memory",
      condition: { target: "customNodeResource", name: "Full", effects: ["reclaimed_cores/NoSchedule"] },
      terminationGracePeriodMs: 2_000,
    });
    expect(policy.rank.map(({ text }) => text)).toEqual(["-pod.priority", "pod.usage.rss", "5"]);
  });

  it("with what it can leave out left out", () => {
    expect(policyOf(simple)).toMatchObject({
      scope: "a",
      condition: null,
      observed: null,
      threshold: null,
      minimumReclaim: null,
      pods: null,
      gracePeriodMs: 0,
      terminationGracePeriodMs: null,
    });
  });

  it("may compare instead of `when`", () => {
    const policy = policyOf(
      "name: a\ntype: hard\nobserved: node.pids.current\noperator: greaterThan\nthreshold: 100\nrank: [1]",
    );
    expect([policy.when, policy.threshold?.text]).toEqual([null, "100"]);
  });
});

describe("a wrong field is refused, with file, policy, field and place", () => {
  const wrong = (fields: string) => problemsOf(`policies:\n  - ${fields.replaceAll("\n", "\n    ")}\n`);

  it.each([
    ["name: A!", simple, "2:11", "name", '"A!" must consist of 1 to 63'],
    ["type: hardish", simple, "3:11", "type", '"hardish" is none of hard, soft'],
    ["when: node.cpu.usage", simple, "4:11", "when", "must be true or false, and is of type double"],
    ["when: node.cpu.usage > 0.9 && node.cpu.core > 1", simple, "4:44", "when", "there is no node.cpu.core"],
    ["when: [1]", simple, "4:11", "when", "must be a single value"],
    ["rank: []", simple, "5:11", "rank", "must rank the pods"],
    ["rank: pod.age", simple, "5:11", "rank", "must be a list"],
    ["rank: [1, 2, pod.agee]", simple, "5:22", "rank[2]", "there is no pod.agee"],
    ["rank: [1, [2]]", simple, "5:15", "rank[1]", "must be a single value"],
    ["rank: [1, 2, 3, 4, 5, 6, 7, 8, 9]", simple, "5:11", "rank", "has 9 items, more than 8"],
  ])("%s", (field, policy, place, name, message) => {
    const key = field.split(":")[0]!;
    const lines = policy.split("\n").map((line) => (line.startsWith(`${key}:`) ? field : line));
    const [problem, ...more] = wrong(lines.join("\n"));
    expect(more).toEqual([]);
    expect(problem).toContain(`p.yaml:${place}: policy "`);
    expect(problem).toContain(`": ${name}: ${message}`);
  });

  it.each([
    ["gracePeriod: soon", "gracePeriod", '"soon" is not a duration'],
    ["gracePeriod: -5s", "gracePeriod", "must not be negative"],
    ["terminationGracePeriod: -5s", "terminationGracePeriod", "must not be negative"],
    ["observed: node.cpu.usage", "observed", "set both `observed` and `threshold`, or neither"],
    ["minimumReclaim: 5", "minimumReclaim", "needs `observed`"],
    ["observed: 1\nthreshold: 2", "operator", "must be lessThan or greaterThan"],
    ["observed: 1\nthreshold: 2\noperator: less", "operator", '"less" is none of'],
    ["condition: { name: A/B, effects: [] }", "condition.name", "can't be the last part"],
    [
      "condition: { name: A, effects: [Never] }",
      "condition.effects[0]",
      "is not an effect such as NoSchedule",
    ],
    [
      "condition: { name: A, target: customNodeResource, effects: [NoSchedule] }",
      "condition.effects[0]",
      "is not an effect",
    ],
    ["condition: { nam: A }", "condition", 'there is no field "nam"'],
    ["condition: MemoryPressure", "condition", "must be a mapping"],
    ["scope: a b", "scope", "is refused"],
    ["pods: node.cpu.usage > 1", "pods", "Unknown variable: node"],
    ["colour: red", "", 'there is no field "colour"'],
  ])("%s", (more, field, message) => {
    const [problem] = wrong(`${simple}\n${more}`);
    expect(problem).toMatch(/^p\.yaml:\d+:\d+: policy "a": /);
    expect(problem).toContain(field === "" ? `"a": ${message}` : `"a": ${field}: `);
    expect(problem).toContain(message);
  });

  it("takes no more steps for one pod than one expression may", () => {
    const loop = "pod.annotationKeys.exists(a, a in pod.annotationKeys)";
    const twice = `${simple.replace("rank: [-pod.priority]", `rank: ['${loop} ? 1 : 0', '${loop} ? 0 : 1']`)}\npods: ${loop}`;
    expect(wrong(twice)[0]).toContain(
      "rank: takes up to 299536 steps with `pods`, more than 200000 for one pod",
    );
  });

  it("needs something to go by", () => {
    expect(wrong("name: a\ntype: hard\nrank: [1]")[0]).toContain("set `when`, or both");
  });
});

describe("an expression's place in the file", () => {
  it.each([
    ["plain", "when: node.cpu.usage > node.cpu.coers", "4:35"],
    ["in quotes", 'when: "node.cpu.usage > node.cpu.coers"', "4:36"],
    ["in single quotes", "when: 'node.cpu.usage > node.cpu.coers'", "4:36"],
    ["in lines as they are", "when: |\n  node.cpu.usage >\n    node.cpu.coers", "6:16"],
    ["in lines to be joined", "when: >-\n  node.cpu.usage >\n  node.cpu.coers", "6:14"],
    ["over two lines", "when: node.cpu.usage >\n  node.cpu.coers", "5:14"],
    ["with escapes: the beginning", 'when: "node.cpu.usage\\u0020> node.cpu.coers"', "4:9"],
  ])("%s", (_how, when, place) => {
    const fields = `name: a\ntype: hard\n${when}\nrank: [1]`.replaceAll("\n", "\n  ");
    const [problem] = problemsOf(`policies:\n- ${fields}\n`);
    expect(problem).toContain(`p.yaml:${place}: policy "a": when: there is no node.cpu.coers`);
  });
});

describe("a file", () => {
  it("continues with the policies that are right", () => {
    const text = `policies:
  - {name: first, type: hard, when: "true", rank: [1]}
  - {name: wrong, type: hard, when: "tru", rank: [1]}
  - 5
  - {name: first, type: hard, when: "true", rank: [1]}
  - {name: last, type: hard, when: "true", rank: [1]}
`;
    const { policies, problems } = readPolicies("p.yaml", text);
    expect(policies.map(({ name }) => name)).toEqual(["first", "last"]);
    expect(problems.map(describeProblem)).toEqual([
      'p.yaml:3:38: policy "wrong": when: Unknown variable: tru',
      "p.yaml:4:5: must be a mapping",
      'p.yaml:5:5: policy "first": name: another policy has this name',
    ]);
  });

  it.each([
    ["", "p.yaml: the file is empty"],
    ["policies:", "p.yaml:1:10: policies: must be a list"],
    ["{}", "p.yaml:1:1: policies: is missing; it must be a list"],
    ["rules: []", 'p.yaml:1:1: there is no field "rules"; there are: policies'],
    ["policies: [", "p.yaml:1:12: "],
    ["policies: [*unknown]", "p.yaml:1:12: "],
    [`policies: [${"{},".repeat(65)}]`, "p.yaml:1:11: policies: has 65 items, more than 64"],
    [" ".repeat(300_000), "p.yaml: has 300000 characters, more than 262144"],
  ])("%j is refused", (text, problem) => {
    expect(problemsOf(text)[0]).toContain(problem);
  });

  it.each(["kubelet-signals", "psi"])("deploy/policies/%s.yaml is right", (name) => {
    const file = new URL(`../../../../deploy/policies/${name}.yaml`, import.meta.url);
    const { policies, problems } = readPolicies(name, readFileSync(file, "utf8"));
    expect(problems).toEqual([]);
    expect(policies.length).toBeGreaterThan(3);
  });
});

it("docs/policies.md shows policies that are right", () => {
  const page = readFileSync(new URL("../../../../docs/policies.md", import.meta.url), "utf8");
  const shown = [...page.matchAll(/```yaml\n(# (?!wrong)\S+\npolicies:.*?)```/gs)].map(([, text]) => text!);
  expect(shown).toHaveLength(1);
  expect(problemsOf(shown[0]!)).toEqual([]);
});

describe("whatever the text is, nothing is thrown", () => {
  const word = fc.constantFrom(
    ...[
      "policies",
      "name",
      "type",
      "when",
      "rank",
      "pods",
      "hard",
      "node",
      "pod",
      "memory",
      "total",
      "labels",
    ],
    ...[
      "(",
      ")",
      "[",
      "]",
      "{",
      "}",
      ".",
      ",",
      ":",
      "-",
      ">",
      "<",
      "&&",
      "!",
      "?",
      "*a",
      "&a",
      "<<",
      "|",
      "\n  ",
      '"',
      "'",
    ],
    ...[
      "all",
      "map",
      "x",
      "1",
      "1.5",
      "0x",
      "1u",
      "b'",
      "//",
      "\\",
      "#",
      "---",
      "%YAML",
      "true",
      "null",
      "\t",
      "\u0000",
    ],
  );

  it("any words", () => {
    fc.assert(
      fc.property(fc.array(word, { maxLength: 40 }), fc.boolean(), (words, isExpression) => {
        const text = words.join(isExpression ? "" : " ");
        const yaml = isExpression
          ? `policies:\n- {name: a, type: hard, when: ${JSON.stringify(text)}, rank: [1]}`
          : text;
        const { policies, problems } = readPolicies("p.yaml", yaml);
        expect(policies.length + problems.length).toBeGreaterThan(0);
        for (const problem of problems) expect(describeProblem(problem)).toMatch(/^p\.yaml/);
      }),
      { numRuns: 500 },
    );
  });

  it("any characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        readPolicies("p.yaml", text);
        readPolicies(
          "p.yaml",
          `policies:\n- {name: a, type: hard, when: ${JSON.stringify(text)}, rank: [1]}`,
        );
      }),
    );
  });
});
