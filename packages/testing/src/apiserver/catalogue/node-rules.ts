import type { KubeObject } from "@nodekeeper/core/kube";
import { isLabelName, isLabelValue, isQuantity, parseQuantity } from "@nodekeeper/core/lib";
import { at, isTree } from "../json.ts";
import { badRequest } from "../status.ts";
import { type Problem, refuse, treesAt } from "./object-rules.ts";

const effects: readonly unknown[] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const NANOS = 1_000_000_000n;

/**
 * Throws as kube-apiserver does if taints or resources of a Node are not valid (`ValidateNode` of
 * pkg/apis/core/validation): a 400 for what is no quantity, and otherwise a 422.
 */
export function validateNode(node: KubeObject): void {
  const subject = { group: "", plural: "nodes", kind: "Node", name: node.metadata.name ?? "" };
  refuse(subject, [...taintProblems(node), ...resourceProblems(node)]);
}

function* taintProblems(node: KubeObject): Generator<Problem> {
  const known = new Set<string>();
  for (const [index, { key, value = "", effect }] of treesAt(node, "spec", "taints").entries()) {
    const field = `metadata.taints[${index}]`;
    if (!isLabelName(String(key))) yield [`${field}.key`, `Invalid value: "${key}": name part is not valid`];
    if (!isLabelValue(String(value)))
      yield [`${field}.value`, `Invalid value: "${value}": a valid label is required`];
    if (!effects.includes(effect)) yield [`${field}.effect`, `Unsupported value: "${effect}"`];
    const identity = `${key}:${effect}`;
    if (known.has(identity)) yield [field, "Duplicate value: taints must be unique by key and effect pair"];
    known.add(identity);
  }
}

function* resourceProblems(node: KubeObject): Generator<Problem> {
  for (const list of ["capacity", "allocatable"]) {
    const resources = at(node, "status", list);
    for (const [name, given] of Object.entries(isTree(resources) ? resources : {})) {
      const field = `status.${list}.${name}`;
      const amount = String(given);
      if (!isQuantity(amount))
        throw badRequest(
          `Node in version "v1" cannot be handled as a Node: ${field}: "${amount}" is no quantity`,
        );
      const { nano } = parseQuantity(amount);
      if (nano < 0n) yield [field, `Invalid value: "${amount}": must be greater than or equal to 0`];
      if (isCounted(name) && nano % NANOS !== 0n)
        yield [field, `Invalid value: "${amount}": must be an integer`];
    }
  }
}

/** Returns whether there is only a whole number of a resource: pods, and what is not Kubernetes' own. */
function isCounted(name: string): boolean {
  return name === "pods" || (name.includes("/") && !name.includes("kubernetes.io/"));
}
