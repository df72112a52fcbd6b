import type { Mutation } from "./mutation.ts";

const claims = "packages/agent/src/claims";

const ownAllocation =
  "A binding condition is written only to the allocation that its driver reported it for.";
const neverGone =
  "A driver takes no claim for deallocated that a pod waits for, or that is yet to be prepared.";
const leftOut =
  "A claim that is allocated anew is left out of a list first, unless the agent can't know what the driver was told.";
const othersStay = "What another client wrote to the status of a device stays while the claim is allocated.";
const told = "At rest, a driver is told of exactly the claims that are allocated and that pods wait for.";
const written = "At rest, the conditions that a driver reports are those of its claims.";

const bounded = "What the agent keeps is bounded by what the node has, and its requests by what changes.";
const noOthers = "A driver is told of allocations that there were, and of no others.";

/** Defects of what is done for devices with binding conditions. */
export const bindingMutations: readonly Mutation[] = [
  {
    name: "binding: the status is written whatever allocation the claim has",
    file: `${claims}/claim-statuses.ts`,
    from: "const entries = isOpen || !isTold ? wanted",
    to: "const entries = isOpen || isTold !== null ? wanted",
    promise: ownAllocation,
    seed: 22,
  },
  {
    name: "binding: the status is written to a claim that was allocated anew since it was read",
    file: `${claims}/claim-status-api.ts`,
    from: 'typeof wanted === "function" ? { resourceVersion } : {}',
    to: "{}",
    promise: ownAllocation,
    seed: 22,
  },
  {
    name: "binding: a driver is told of an allocation of another node",
    file: `${claims}/claim-to-bind.ts`,
    from: "  if (isOfOtherNodes(recordOf(nodeSelector), nodeName)) return [];\n",
    to: "",
    promise: noOthers,
    seed: 9,
  },
  {
    name: "binding: no status is written to a claim whose allocation the API server changes in an apply",
    file: `${claims}/claim-status-api.ts`,
    from: "if (!isAllocationChanged(error)) throw error;",
    to: "if (!isAllocationChanged(error) || isAllocationChanged(error)) throw error;",
    promise: written,
    seed: 50,
  },
  {
    name: "binding: what was reported before the driver was told is written",
    file: `${claims}/reported-statuses.ts`,
    from: "    this.#outdated.set(driver, new Set([...(this.#outdated.get(driver) ?? []), ...uids]));\n",
    to: "",
    promise: ownAllocation,
    seed: 171,
  },
  {
    name: "binding: a claim that is allocated the same device again seems to be as before",
    file: `${claims}/claim-to-bind.ts`,
    from: "    uid,\n    allocatedAt,\n    devices.map",
    to: "    uid,\n    devices.map",
    promise: ownAllocation,
    seed: 22,
  },
  {
    name: "binding: a claim that is allocated anew is not left out of a list",
    file: `${claims}/allocation-reports.ts`,
    from: "notice.set(claims.some(isAnew) ?",
    to: "notice.set(claims.every(isAnew) && !claims[0] ?",
    promise: leftOut,
    seed: 22,
  },
  {
    name: "binding: the status of claims that the driver was not told of is kept after it was told",
    file: `${claims}/allocation-reports.ts`,
    from: "    this.#options.statuses.renewed(driver, added);\n",
    to: "",
    promise: written,
    seed: 47,
  },
  {
    name: "binding: a driver is told before all claims are known",
    file: `${claims}/allocation-reports.ts`,
    from: "    if (!known.claims && !this.#toBind.isComplete) return;\n",
    to: "",
    promise: neverGone,
    seed: 40,
  },
  {
    name: "binding: a claim whose pod was bound is not told any more",
    file: `${claims}/claims-to-bind.ts`,
    from: "    if (followed.heldUid === uid && drivers.some(",
    to: "    if (followed.heldUid !== uid && drivers.some(",
    promise: neverGone,
    seed: 20,
  },
  {
    name: "binding: after a start, a claim whose pod was bound before is not told",
    file: `${claims}/claims-to-bind.ts`,
    from: "    this.#followUnprepared();\n    try {",
    to: "    try {",
    promise: neverGone,
    seed: 40,
  },
  {
    name: "binding: a claim that an agent was killed while preparing is not told",
    file: `${claims}/claim-statuses.ts`,
    from: '(records.get(...partsOf(key))?.state ?? "preparing") === "preparing"',
    to: "!records.get(...partsOf(key))",
    promise: neverGone,
    seed: 67,
  },
  {
    name: "bounds: a claim that is followed keeps all pods that have waited for it",
    file: `${claims}/claims-to-bind.ts`,
    from: "if (!reserved.has(pod)) pods.delete(pod);",
    to: "if (!reserved) pods.delete(pod);",
    promise: bounded,
    seed: 1040,
  },
  {
    name: "binding: a driver is told of what it has prepared",
    file: `${claims}/claims-to-bind.ts`,
    from: "        preparedBy.add(driver);",
    to: "        preparedBy.delete(driver);",
    promise: told,
    seed: 33,
  },
  {
    name: "binding: entries are written as another client",
    file: `${claims}/claim-status-api.ts`,
    from: "fieldManager: manager, signal }",
    to: 'fieldManager: "checker", signal }',
    promise: othersStay,
    seed: 20,
  },
  {
    name: "binding: a status that changes is not written",
    file: `${claims}/reported-statuses.ts`,
    from: "    return new Set([...outdated, ...uids.filter(differs)]);",
    to: "    return new Set([...outdated, ...uids.filter(() => false)]);",
    promise: written,
    seed: 284,
  },
];
