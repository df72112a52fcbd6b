import type { Mutation } from "./mutation.ts";

const written =
  "Slices of pools beyond the node are written by the agent that has the Lease, until 30 seconds after its last renewal.";
const taken = "A Lease is taken only if it was released, or has not changed for 40 seconds.";
const others = "No Lease, slice or note of another owner is changed for a pool beyond the node.";
const held = "After quiet, a running agent whose driver reports pools beyond the node has their Lease.";
const replaced = "Within two minutes after a holder of a Lease was killed, the next one publishes.";
const handedOver = "Within half a minute after a holder of a Lease ended, the next one publishes.";
const away = "A holder of a Lease whose driver is away steps down, and its slices stay.";
const removed = "Slices that no driver reports any more are removed, and then their Lease.";
const abandoned =
  "If the driver that reported them is gone, slices and Lease are removed 10 to 23 minutes after the last holder, by an agent with this driver.";

const lease = "packages/core/src/kube/lease.ts";
const sync = "packages/agent/src/devices/sync";

/** Defects of pools beyond the node. */
export const poolMutations: readonly Mutation[] = [
  {
    name: "pools: slices are written without the Lease",
    file: `${sync}/cluster-pools.ts`,
    from: "const taking = candidacy.election.run(lead, scope.signal, isPatient);",
    to: "const taking = lead(scope.signal);",
    promise: written,
    seed: 2,
  },
  {
    name: "pools: a holder that can't renew the Lease goes on",
    file: lease,
    from: "clock.after(until - clock.monotonic(), () =>",
    to: "clock.after(600_000, () =>",
    promise: written,
    seed: 94,
  },
  {
    name: "pools: the Lease is taken from a holder that renews it",
    file: lease,
    from: "if (this.#seen?.version !== version) {",
    to: "if (!this.#seen) {",
    promise: taken,
    seed: 142,
  },
  {
    name: "pools: the wall clock decides that a Lease is over",
    file: lease,
    from: "const now = this.#options.clock.monotonic();",
    to: "const now = this.#options.clock.now();",
    promise: taken,
    seed: 181,
  },
  {
    name: "pools: a killed holder is not replaced",
    file: lease,
    from: "return now - this.#seen.at >= durationMs;",
    to: "return false;",
    promise: held,
    seed: 23,
  },
  {
    name: "pools: agents look too seldom whether a holder still renews the Lease",
    file: lease,
    from: "const lookMs = isPatient ? this.#times.abandonedMs / 2 : this.#times.lookMs;",
    to: "const lookMs = isPatient ? this.#times.abandonedMs / 2 : 4 * this.#times.lookMs;",
    promise: replaced,
    seed: 2,
  },
  {
    name: "pools: the Lease is not released when the agent stops",
    file: lease,
    from: "if (lease && clock.monotonic() < until) await",
    to: "if (isDone && lease && clock.monotonic() < until) await",
    promise: handedOver,
    seed: 79,
  },
  {
    name: "pools: a holder whose driver is away stays",
    file: `${sync}/driver.ts`,
    from: "return isRegistered && isStreaming && !unresponsive && !isTainted && !this.#isWithdrawn;",
    to: "return this.#message !== undefined && (isRegistered || isStreaming || !isTainted || !unresponsive);",
    promise: away,
    seed: 153,
  },
  {
    name: "pools: the Lease is deleted before the slices are",
    file: `${sync}/cluster-pools.ts`,
    from: "candidacy.isDone = !driver.hasClusterPools && !mayHaveSlices(name, candidacy.term);",
    to: "candidacy.isDone = !driver.hasClusterPools;",
    promise: removed,
    seed: 14,
  },
  {
    name: "pools: an agent whose driver reports none takes the Lease like others",
    file: lease,
    from: "const leastMs = isPatient ? this.#times.abandonedMs : this.#times.durationMs;",
    to: "const leastMs = this.#times.durationMs;",
    promise: abandoned,
    seed: 19,
  },
  {
    name: "pools: slices that nobody reports are left",
    file: `${sync}/cluster-pools.ts`,
    from: "const isPatient = !driver.hasClusterPools;",
    to: "const isPatient = !driver.hasClusterPools;\n      if (isPatient) {\n        await sleepOrAbort(clock, LOOK_MS, signal);\n        continue;\n      }",
    promise: abandoned,
    seed: 137,
  },
  {
    name: "pools: slices of another client are taken for the agent's",
    file: `${sync}/slice-api.ts`,
    from: "if (hasLabel(metadata) || name.endsWith(nameSuffix(driver, nodeName, poolKey(pool.name)))) {",
    to: "if (driver !== undefined) {",
    promise: others,
    seed: 2,
  },
  {
    name: "pools: what another client notes on the Lease is lost",
    file: lease,
    from: "const update = { ...last, spec:",
    to: "const update = { ...last, metadata: { ...last.metadata, annotations: {} }, spec:",
    promise: others,
    seed: 11,
  },
];
