import type { KubeObject } from "@nodekeeper/core/kube";
import { isDnsLabel, isDnsSubdomain } from "@nodekeeper/core/lib";
import { at, sameJson, type Tree } from "../json.ts";
import { counterProblems, deviceProblems, isAdvanced, isDriverName } from "./device-rules.ts";
import { type Problem, refuse, treesAt } from "./object-rules.ts";

// Of k8s.io/api/resource/v1.
const MOST_DEVICES = 128;
const MOST_ADVANCED_DEVICES = 64;
const MOST_COUNTER_SETS = 8;
const scopes = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"] as const;

/**
 * Throws a 422 if a ResourceSlice breaks a rule of kube-apiserver (`validateResourceSliceSpec` of
 * pkg/apis/resource/validation), except for those about request policies, quantities, names of nodes, node selectors,
 * compatibility groups, `partitionTypeAttribute`, resources of the node that devices map to, and operations that are
 * skipped. Capacity and taints are checked also if they have not changed.
 * @param before the slice that it replaces; undefined if it is new
 */
export function validateResourceSlice(slice: KubeObject, before?: KubeObject): void {
  const { name = "" } = slice.metadata;
  const subject = { group: "resource.k8s.io", plural: "resourceslices", kind: "ResourceSlice", name };
  refuse(subject, [...poolProblems(slice, before), ...scopeProblems(slice), ...contentProblems(slice)]);
}

function* poolProblems(slice: KubeObject, before: KubeObject | undefined): Generator<Problem> {
  const driver = String(at(slice, "spec", "driver") ?? "");
  const pool = String(at(slice, "spec", "pool", "name") ?? "");
  if (!isDriverName(driver)) yield ["spec.driver", `Invalid value: "${driver}"`];
  if (pool.length > 253 || !pool.split("/").every(isDnsSubdomain))
    yield ["spec.pool.name", `Invalid value: "${pool}"`];
  if (Number(at(slice, "spec", "pool", "resourceSliceCount") ?? 0) <= 0)
    yield ["spec.pool.resourceSliceCount", "Invalid value: must be greater than zero"];
  if (Number(at(slice, "spec", "pool", "generation") ?? 0) < 0)
    yield ["spec.pool.generation", "Invalid value: must be greater than or equal to zero"];
  if (!before) return;
  for (const path of [["pool", "name"], ["driver"], ["nodeName"]]) {
    if (!sameJson(at(slice, "spec", ...path), at(before, "spec", ...path)))
      yield [`spec.${path.join(".")}`, "Invalid value: field is immutable"];
  }
}

function* scopeProblems({ spec }: KubeObject): Generator<Problem> {
  const given = scopes.filter((scope) => at(spec, scope) !== undefined);
  const expected = `exactly one of ${scopes.map((scope) => `\`${scope}\``).join(", ")} is required`;
  for (const scope of given) {
    if (at(spec, scope) === "") yield [`spec.${scope}`, "Invalid value: must be a non-empty string"];
    if (at(spec, scope) === false)
      yield [`spec.${scope}`, "Invalid value: must be either unset or set to true"];
  }
  if (given.length === 0) yield ["spec", `Required value: ${expected}`];
  if (given.length > 1) yield ["spec", `Invalid value: ${expected}, but multiple fields are set`];
}

function* contentProblems({ spec }: KubeObject): Generator<Problem> {
  const devices = treesAt(spec, "devices");
  const counterSets = treesAt(spec, "sharedCounters");
  if (at(spec, "devices") !== undefined && at(spec, "sharedCounters") !== undefined)
    yield ["spec", "Invalid value: only one of `sharedCounters` or `devices` is allowed"];
  const most = devices.some(isAdvanced) ? MOST_ADVANCED_DEVICES : MOST_DEVICES;
  if (devices.length > most) yield ["spec.devices", `Too many: must have at most ${most} items`];
  if (counterSets.length > MOST_COUNTER_SETS)
    yield ["spec.sharedCounters", `Too many: must have at most ${MOST_COUNTER_SETS} items`];
  yield* nameProblems("spec.devices", devices);
  yield* nameProblems("spec.sharedCounters", counterSets);
  const isPerDevice = at(spec, "perDeviceNodeSelection") === true;
  for (const [index, device] of devices.entries())
    yield* deviceProblems(`spec.devices[${index}]`, device, isPerDevice);
  for (const [index, set] of counterSets.entries())
    yield* counterProblems(`spec.sharedCounters[${index}].counters`, set);
}

function* nameProblems(field: string, items: readonly Tree[]): Generator<Problem> {
  const known = new Set<unknown>();
  for (const [index, { name }] of items.entries()) {
    if (!isDnsLabel(String(name ?? ""))) yield [`${field}[${index}].name`, `Invalid value: "${name}"`];
    if (known.has(name)) yield [`${field}[${index}]`, `Duplicate value: "${name}"`];
    known.add(name);
  }
}
