import type { KubeObject } from "@nodekeeper/core/kube";
import { isQuantity, parseQuantity } from "@nodekeeper/core/lib";
import { at, isTree } from "../json.ts";
import { badRequest } from "../status.ts";
import { type Problem, refuse, taintProblems, treesAt } from "./object-rules.ts";

const effects: readonly unknown[] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const NANOS = 1_000_000_000n;

/**
 * Throws as kube-apiserver does if taints or resources of a Node are not valid (`ValidateNode` of
 * pkg/apis/core/validation): a 400 if a value is not a quantity, otherwise a 422.
 */
export function validateNode(node: KubeObject): void {
  const subject = { group: "", plural: "nodes", kind: "Node", name: node.metadata.name ?? "" };
  refuse(subject, [...taintsProblems(node), ...resourceProblems(node)]);
}

function* taintsProblems(node: KubeObject): Generator<Problem> {
  const known = new Set<string>();
  for (const [index, taint] of treesAt(node, "spec", "taints").entries()) {
    const field = `metadata.taints[${index}]`;
    yield* taintProblems(field, taint, effects);
    const identity = `${taint.key}:${taint.effect}`;
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
          `Node in version "v1" cannot be handled as a Node: ${field}: "${amount}" is not a quantity`,
        );
      const { nano } = parseQuantity(amount);
      if (nano < 0n) yield [field, `Invalid value: "${amount}": must be greater than or equal to 0`];
      if (isCounted(name) && nano % NANOS !== 0n)
        yield [field, `Invalid value: "${amount}": must be an integer`];
    }
  }
}

/** Returns whether quantities of a resource must be integers: those of pods and of extended resources. */
function isCounted(name: string): boolean {
  return name === "pods" || (name.includes("/") && !name.includes("kubernetes.io/"));
}
