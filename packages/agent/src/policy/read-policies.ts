import { checkPluginName, messageOf, NodekeeperError, parseDuration, quote } from "@nodekeeper/core/lib";
import { isMap, isScalar } from "yaml";
import { MOST_STEPS } from "./cost.ts";
import { Compiler, type Condition, type Formula } from "./expression.ts";
import { nodeFields, podFields } from "./fields.ts";
import type { Policy, PolicyCondition } from "./policy.ts";
import type { LoadedPolicies, PolicyProblem } from "./policy-problem.ts";
import { PlacedError, parseYaml, placeOf, type SourceText, YamlFields } from "./yaml-fields.ts";

/** Characters of a file, and policies in it. */
const LONGEST_FILE = 256 * 1024;
const MOST_POLICIES = 64;
const MOST_RANKS = 8;
const LONGEST_DESCRIPTION = 1_000;

const policyKeys = [
  "name",
  "description",
  "type",
  "when",
  "observed",
  "operator",
  "threshold",
  "minimumReclaim",
  "gracePeriod",
  "scope",
  "condition",
  "pods",
  "rank",
  "terminationGracePeriod",
] as const;

/**
 * Compiles the policies of a text. Never throws: a policy that is wrong is among the problems, with its place, and the
 * others continue. @param file for messages
 */
export function readPolicies(file: string, text: string): LoadedPolicies {
  const problems: PolicyProblem[] = [];
  const refuse = (policy: string, error: unknown) => problems.push(problemOf(file, policy, error));
  const policies: Policy[] = [];
  try {
    const { fields, source } = parseYaml(text, LONGEST_FILE, ["policies"]);
    const nodes = fields.items("policies", MOST_POLICIES);
    if (!nodes) throw fields.error("policies", "there must be a list of policies");
    const compilers = {
      node: new PlacedCompiler(file, new Compiler({ node: nodeFields })),
      pod: new PlacedCompiler(file, new Compiler({ pod: podFields })),
    };
    for (const node of nodes) {
      const name = nameOf(node);
      try {
        const policy = readPolicy(node, source, compilers);
        if (policies.some((other) => other.name === policy.name)) {
          throw new PlacedError("name", placeOf(node, source), "another policy has this name");
        }
        policies.push(policy);
      } catch (error) {
        refuse(name, error);
      }
    }
  } catch (error) {
    refuse("", error);
  }
  return { policies, problems };
}

interface Compilers {
  node: PlacedCompiler;
  pod: PlacedCompiler;
}

/** Compiles expressions of a file: their problems have its name and the place. */
class PlacedCompiler {
  readonly #file: string;
  readonly #compiler: Compiler;

  constructor(file: string, compiler: Compiler) {
    this.#file = file;
    this.#compiler = compiler;
  }

  readonly condition = (text: string, placeAt: PlaceAt): Condition =>
    this.#compiler.condition(text, this.#locate(placeAt));

  readonly formula = (text: string, placeAt: PlaceAt): Formula =>
    this.#compiler.formula(text, this.#locate(placeAt));

  #locate(placeAt: PlaceAt): (offset: number) => string {
    return (offset) => {
      const { line, col } = placeAt(offset);
      return `${this.#file}:${line}:${col}`;
    };
  }
}

type PlaceAt = (offset: number) => { line: number; col: number };

function readPolicy(node: unknown, source: SourceText, { node: ofNode, pod: ofPod }: Compilers): Policy {
  const fields = new YamlFields(node, source, "", policyKeys);
  const name = readName(fields);
  const formula = (field: string) => fields.parsed(field, ofNode.formula) ?? null;
  const when = fields.parsed("when", ofNode.condition) ?? null;
  const observed = formula("observed");
  const threshold = formula("threshold");
  const minimumReclaim = formula("minimumReclaim");
  if (when === null && (observed === null || threshold === null)) {
    throw fields.error("when", "there must be `when`, or both `observed` and `threshold`");
  }
  if ((observed === null) !== (threshold === null)) {
    throw fields.error("observed", "`observed` and `threshold` must both be there, or neither");
  }
  if (minimumReclaim !== null && observed === null) {
    throw fields.error("minimumReclaim", "needs `observed` and `threshold`");
  }
  if (observed !== null && !fields.has("operator")) {
    throw fields.error(
      "operator",
      "must be lessThan or greaterThan: how `observed` compares to `threshold` when it is met",
    );
  }
  const rank = fields.parsedList("rank", MOST_RANKS, ofPod.formula) ?? [];
  if (rank.length === 0)
    throw fields.error(
      "rank",
      "must rank the pods: a list of numbers of a pod; the pod with the greatest is evicted first",
    );
  const pods = fields.parsed("pods", ofPod.condition) ?? null;
  const steps = [pods, ...rank].reduce((sum, expression) => sum + (expression?.steps ?? 0), 0);
  if (steps > MOST_STEPS) {
    throw fields.error(
      "rank",
      `takes up to ${steps} steps with \`pods\`, more than ${MOST_STEPS} for one pod`,
    );
  }
  return {
    name,
    description: fields.text("description", "").slice(0, LONGEST_DESCRIPTION),
    type: fields.oneOf("type", ["hard", "soft"]),
    when,
    observed,
    threshold,
    operator: fields.oneOf("operator", ["lessThan", "greaterThan"], "greaterThan"),
    minimumReclaim,
    gracePeriodMs: readDuration(fields, "gracePeriod") ?? 0,
    scope: fields.parsed("scope", (text) => checked(text, checkPluginName)) ?? name,
    condition: readCondition(fields.fields("condition", ["target", "name", "effects"])),
    pods,
    rank,
    terminationGracePeriodMs: readDuration(fields, "terminationGracePeriod") ?? null,
  };
}

function readName(fields: YamlFields): string {
  const name = fields.text("name");
  if (/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/.test(name)) return name;
  throw fields.error(
    "name",
    `${quote(name)} must have 1 to 63 characters out of lower case letters, digits, '-' and '.'`,
  );
}

function readDuration(fields: YamlFields, name: string): number | undefined {
  const duration = fields.parsed(name, parseDuration);
  if (duration === undefined || duration >= 0) return duration;
  throw fields.error(name, "must not be negative");
}

// The taint's key is made of the name, and its effects are those that eviction takes.
function readCondition(fields: YamlFields | undefined): PolicyCondition | null {
  if (!fields) return null;
  const target = fields.oneOf("target", ["node", "customNodeResource"], "node");
  const name = fields.text("name");
  if (!/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(name)) {
    throw fields.error("name", `${quote(name)} can't be the last part of a taint's key`);
  }
  const form = target === "node" ? nodeEffect : customNodeResourceEffect;
  const effects = fields.parsedList("effects", 8, (text) =>
    checked(text, () => {
      if (form.test(text)) return;
      const example =
        target === "node" ? "NoSchedule, PreferNoSchedule, NoExecute" : "reclaimed_cores/NoSchedule";
      throw new NodekeeperError("invalid", `${quote(text)} is no effect such as ${example}`);
    }),
  );
  return { target, name, effects: effects ?? [] };
}

const nodeEffect = /^(NoSchedule|PreferNoSchedule|NoExecute)$/;
const customNodeResourceEffect = /^reclaimed_cores\/(NoSchedule|PreferNoSchedule|NoExecute)$/;

function checked(text: string, check: (text: string) => void): string {
  check(text);
  return text;
}

function nameOf(node: unknown): string {
  const name = isMap(node) ? node.get("name", true) : undefined;
  return isScalar(name) ? String(name.value).slice(0, 63) : "";
}

function problemOf(file: string, policy: string, error: unknown): PolicyProblem {
  const { field, line, column } = error instanceof PlacedError ? error : { field: "", line: 0, column: 0 };
  return { file, policy, field, line, column, message: messageOf(error) };
}
