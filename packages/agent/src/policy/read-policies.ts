import { checkPluginName, messageOf, parseDuration, quote } from "@nodekeeper/core/lib";
import { parseYaml, YamlError, type YamlFields, type YamlValue } from "@nodekeeper/core/yaml";
import { MOST_STEPS } from "./cost.ts";
import { Compiler } from "./expression.ts";
import { nodeFields, podFields } from "./fields.ts";
import type { Policy, PolicyCondition } from "./policy.ts";
import type { LoadedPolicies, PolicyProblem } from "./policy-problem.ts";

/**
 * Limits of a file: characters, policies, `rank` expressions of a policy, and characters of a description.
 */
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
 * Compiles the policies of a text. Never throws: an invalid policy is reported among the problems with its
 * position, and the others are returned.
 * @param file name of the file, for messages
 */
export function readPolicies(file: string, text: string): LoadedPolicies {
  const problems: PolicyProblem[] = [];
  const policies: Policy[] = [];
  const attempt = (policy: string, work: () => void) => {
    try {
      work();
    } catch (error) {
      problems.push(problemOf(file, policy, error));
    }
  };
  const { root, problems: syntax } = parseYaml(text, LONGEST_FILE);
  problems.push(...syntax.map((error) => problemOf(file, "", error)));
  attempt("", () => {
    const compilers = {
      node: new Compiler({ node: nodeFields }, file),
      pod: new Compiler({ pod: podFields }, file),
    };
    for (const each of root?.fields(["policies"]).need("policies").items(MOST_POLICIES) ?? []) {
      attempt(nameOf(each), () => {
        const policy = readPolicy(each, compilers);
        if (policies.some(({ name }) => name === policy.name))
          throw new YamlError("name", each.place, "another policy has this name");
        policies.push(policy);
      });
    }
  });
  return { policies, problems };
}

interface Compilers {
  node: Compiler;
  pod: Compiler;
}

function readPolicy(written: YamlValue, { node: ofNode, pod: ofPod }: Compilers): Policy {
  const fields = written.fields(policyKeys);
  const name = readName(fields);
  const formula = (field: string) => fields.get(field)?.parse(ofNode.formula) ?? null;
  const when = fields.get("when")?.parse(ofNode.condition) ?? null;
  const observed = formula("observed");
  const threshold = formula("threshold");
  const minimumReclaim = formula("minimumReclaim");
  if (when === null && (observed === null || threshold === null)) {
    throw fields.need("when").error("set `when`, or both `observed` and `threshold`");
  }
  if ((observed === null) !== (threshold === null)) {
    throw fields.need("observed").error("set both `observed` and `threshold`, or neither");
  }
  if (minimumReclaim !== null && observed === null) {
    throw fields.need("minimumReclaim").error("needs `observed` and `threshold`");
  }
  if (observed !== null && !fields.get("operator")) {
    throw fields
      .need("operator")
      .error("must be lessThan or greaterThan: how `observed` compares to `threshold` when it is met");
  }
  const rank = (fields.get("rank")?.items(MOST_RANKS) ?? []).map((each) => each.parse(ofPod.formula));
  if (rank.length === 0)
    throw fields
      .need("rank")
      .error("must rank the pods: a list of numbers of a pod; the pod with the greatest is evicted first");
  const pods = fields.get("pods")?.parse(ofPod.condition) ?? null;
  const steps = [pods, ...rank].reduce((sum, expression) => sum + (expression?.steps ?? 0), 0);
  if (steps > MOST_STEPS) {
    throw fields
      .need("rank")
      .error(`takes up to ${steps} steps with \`pods\`, more than ${MOST_STEPS} for one pod`);
  }
  return {
    name,
    description: (fields.get("description")?.text() ?? "").slice(0, LONGEST_DESCRIPTION),
    type: fields.need("type").oneOf(["hard", "soft"]),
    when,
    observed,
    threshold,
    operator: fields.get("operator")?.oneOf(["lessThan", "greaterThan"]) ?? "greaterThan",
    minimumReclaim,
    gracePeriodMs: readDuration(fields, "gracePeriod") ?? 0,
    scope: fields.get("scope")?.parse((text) => checked(text, checkPluginName)) ?? name,
    condition: readCondition(fields.get("condition")?.fields(["target", "name", "effects"])),
    pods,
    rank,
    terminationGracePeriodMs: readDuration(fields, "terminationGracePeriod") ?? null,
  };
}

function readName(fields: YamlFields): string {
  const name = fields.need("name").text();
  if (/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/.test(name)) return name;
  throw fields
    .need("name")
    .error(`${quote(name)} must consist of 1 to 63 lower case letters, digits, '-' and '.'`);
}

function readDuration(fields: YamlFields, name: string): number | undefined {
  const duration = fields.get(name)?.parse(parseDuration);
  if (duration === undefined || duration >= 0) return duration;
  throw fields.need(name).error("must not be negative");
}

// The taint key contains the name. The effects must be ones that eviction supports.
function readCondition(fields: YamlFields | undefined): PolicyCondition | null {
  if (!fields) return null;
  const target = fields.get("target")?.oneOf(["node", "customNodeResource"]) ?? "node";
  const name = fields.need("name").text();
  if (!/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(name)) {
    throw fields.need("name").error(`${quote(name)} can't be the last part of a taint's key`);
  }
  const form = target === "node" ? nodeEffect : customNodeResourceEffect;
  const example =
    target === "node" ? "NoSchedule, PreferNoSchedule, NoExecute" : "reclaimed_cores/NoSchedule";
  const effects = (fields.get("effects")?.items(8) ?? []).map((each) => {
    const effect = each.text();
    if (form.test(effect)) return effect;
    throw each.error(`${quote(effect)} is not an effect such as ${example}`);
  });
  return { target, name, effects };
}

const nodeEffect = /^(NoSchedule|PreferNoSchedule|NoExecute)$/;
const customNodeResourceEffect = /^reclaimed_cores\/(NoSchedule|PreferNoSchedule|NoExecute)$/;

function checked(text: string, check: (text: string) => void): string {
  check(text);
  return text;
}

// Returns the name to report in problems of a policy that cannot be read.
function nameOf(policy: YamlValue): string {
  const name = policy.isMapping ? policy.entries().find((entry) => entry.name === "name") : undefined;
  return name?.value.isText ? name.value.text().slice(0, 63) : "";
}

function problemOf(file: string, policy: string, error: unknown): PolicyProblem {
  const { path: field, place } = error instanceof YamlError ? error : { path: "", place: undefined };
  const { line, column } = place ?? { line: 0, column: 0 };
  return {
    file,
    policy,
    field: field.replace(/^policies\[\d+\]\.?/, ""),
    line,
    column,
    message: messageOf(error),
  };
}
