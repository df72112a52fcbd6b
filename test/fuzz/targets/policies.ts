import fc from "fast-check";
import { loadPolicies } from "../../../packages/agent/src/policy/load-policies.ts";
import { describeProblem } from "../../../packages/agent/src/policy/policy-problem.ts";
import { readSceneFile, sceneOfFile } from "../../../packages/agent/src/policy/scene-file.ts";
import { tryPolicy } from "../../../packages/agent/src/policy/try-policy.ts";
import { bytesOf, type FuzzTarget, textOf } from "../fuzz-target.ts";
import { mutated } from "../mutations.ts";

const fields = fc.constantFrom(
  "node.memory.available",
  "node.psi.memory.some.avg10",
  "pod.priority",
  "pod.usage.memory",
  "pod.requests.cpu",
  "pod.labels",
  "pod.name",
  "pod.qosClass",
  "nothing.known",
);
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { depthSize: "small" },
    fields,
    fc.constantFrom("1", "0", "1.5e300", "-1", '"a"', "true", "[1, 2]", "{}", "10000000000000000000"),
    fc
      .tuple(
        tie("expression"),
        fc.constantFrom("+", "-", "*", "/", "%", "<", ">", "==", "&&", "||", "in"),
        tie("expression"),
      )
      .map(([a, op, b]) => `(${a} ${op} ${b})`),
    fc
      .tuple(tie("expression"), tie("expression"), tie("expression"))
      .map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
    tie("expression").map((inner) => `size(${inner})`),
    tie("expression").map((inner) => `[1, 2, 3].all(x, ${inner} > x)`),
    tie("expression").map((inner) => `${inner}.glob("a*")`),
    tie("expression").map((inner) => `${inner}["a"]`),
  ),
}));
const quoted = expression.map((text) => JSON.stringify(text));
const files = fc
  .array(
    fc.record({
      name: fc.constantFrom("a", "b", "A b", ""),
      type: fc.constantFrom("hard", "soft", "other"),
      observed: quoted,
      operator: fc.constantFrom("lessThan", "greaterThan"),
      threshold: fc.oneof(quoted, fc.constant("1")),
      pods: quoted,
      rank: quoted,
    }),
    { maxLength: 3 },
  )
  .map((policies) =>
    [
      "policies:",
      ...policies.map(
        ({ name, rank, ...others }) =>
          `  - name: ${JSON.stringify(name)}\n${Object.entries(others)
            .map(([key, value]) => `    ${key}: ${value}\n`)
            .join("")}    rank: [${rank}]`,
      ),
    ].join("\n"),
  );
const scene = sceneOfFile(
  readSceneFile(
    "scene.yaml",
    JSON.stringify({
      node: { memory: { total: "16Gi", available: "1Gi", free: "1Gi", workingSet: "15Gi" } },
      pods: ["a", "b"].map((name) => ({ name, namespace: "default", priority: 1, usage: { memory: "1Gi" } })),
    }),
  ),
  Date.parse("2026-01-01"),
);

/** Policy files: a bad policy is a problem with a place, a good one judges every node without throwing. */
export const policies: FuzzTarget = {
  name: "policies",
  about: "eviction policies in CEL",
  inputs: mutated(files.map(bytesOf)),
  async run(input) {
    const { policies: loaded, problems } = await loadPolicies("fuzz.yaml", textOf(input));
    for (const problem of problems)
      if (problem.message === "" || !describeProblem(problem).startsWith("fuzz.yaml"))
        throw new Error("a problem without place or text");
    const { signal } = new AbortController();
    for (const policy of loaded) {
      const { ranking } = await tryPolicy(policy, scene, false, signal);
      if (ranking.some(({ values }) => values.some((value) => Number.isNaN(value))))
        throw new Error("a pod is ranked by what is no number");
    }
  },
};
