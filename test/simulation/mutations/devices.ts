import type { Mutation } from "./mutation.ts";

const allocatable = "The scheduler can allocate exactly the healthy devices that drivers last sent.";
const toldPrepared =
  "The kubelet is told that a claim is prepared only once its driver has prepared it, with its CDI file.";
const cdiFiles = "CDI files are those of the prepared claims.";
const claims = "Each allocated claim that a pod uses is prepared, and each other is unprepared.";
const unused = "A claim is unprepared once all containers of its pod have exited.";
const noLeftovers = "No ResourceSlice is left behind: each has the newest generation of its pool.";
const exclusive = "No device, and no share of one, is prepared for two claims at one time.";
const calledOnce =
  "A driver is called once to prepare a claim and once to unprepare it, unless its answer or what it had prepared was lost.";
const foreignCdi = "CDI files of another owner are never changed.";
const whole = "No pool is incomplete for longer than its writes take.";
const noticed =
  "While what changed can't be written, the health check that is about it fails, and not when it is written.";
const bounded = "What the agent keeps is bounded by what the node has, and its requests by what changes.";

/** Defects of ResourceSlices and of prepared claims. */
export const deviceMutations: readonly Mutation[] = [
  {
    name: "a ResourceSlice is left",
    file: "packages/agent/src/devices/plan/plan.ts",
    from: "deletes: stored.filter((slice) => !kept.has(slice)),",
    to: "deletes: [],",
    promise: noLeftovers,
    seed: 30,
  },
  {
    name: "a claim is answered without its CDI file",
    file: "packages/agent/src/claims/driver-preparation.ts",
    from: 'if (prepared.cdi !== "") directory.write(driver, uid, prepared.cdi);',
    to: "",
    promise: toldPrepared,
    seed: 1,
  },
  {
    name: "a claim is not unprepared",
    file: "packages/agent/src/claims/preparation.ts",
    from: "await this.#unpreparation.run(driver, claim, signal, call.signal);",
    to: "",
    promise: claims,
    seed: 8,
  },
  {
    name: "a claim that the kubelet could not unprepare is not prepared for the next pod",
    file: "packages/agent/src/claims/interrupted-unprepare.ts",
    from: "if (users.length === 0 || !connection) {",
    to: "if (users.length >= 0 || !connection) {",
    promise: cdiFiles,
    seed: 534,
  },
  {
    name: "a claim is unprepared while containers use it",
    file: "packages/agent/src/claims/unpreparation.ts",
    from: "if (record) await this.#checkUnused(record, signal);",
    to: "",
    promise: unused,
    seed: 1,
  },
  {
    name: "a device of another claim is prepared",
    file: "packages/agent/src/claims/hand-on.ts",
    from: ".filter((other) => other.uid !== uid &&",
    to: ".filter((other) => other.uid === uid &&",
    promise: exclusive,
    seed: 7,
  },
  {
    name: "shares of a device are not told apart",
    file: "packages/agent/src/claims/allocation.ts",
    from: "shareId: textOf(result.shareID),",
    to: 'shareId: "",',
    promise: toldPrepared,
    seed: 1,
  },
  {
    name: "claims exclude each other from a device that they share",
    file: "packages/agent/src/claims/allocation.ts",
    from: "a.device === b.device && !areShares;",
    to: "a.device === b.device && (!areShares || areShares);",
    promise: claims,
    seed: 3,
  },
  {
    name: "claims that are prepared at one time are not compared",
    file: "packages/agent/src/claims/driver-preparation.ts",
    from: "handOn.refuseConflicts(driver, claim.uid, allocation.devices);",
    to: "",
    promise: exclusive,
    seed: 184,
  },
  {
    name: "slices of another client in a pool are ignored",
    file: "packages/agent/src/devices/plan/plan.ts",
    from: "const foreignByPool = Map.groupBy(foreign,",
    to: "const foreignByPool = Map.groupBy([] as typeof foreign,",
    promise: allocatable,
    seed: 8,
  },
  {
    name: "a removed pool is left",
    file: "packages/agent/src/devices/plan/plan.ts",
    from: "return [...removals, ...plans].filter(",
    to: "return plans.filter(",
    promise: allocatable,
    seed: 13,
  },
  {
    name: "slices that are not written for long fail no check",
    file: "packages/agent/src/devices/sync/health.ts",
    from: "ok: !isAll || !problems.every(({ problem: own }) => isBad(own)),",
    to: "ok: true,",
    promise: noticed,
    seed: 20,
  },
  {
    name: "a device that a driver reports twice is published twice",
    file: "packages/agent/src/devices/model/validate.ts",
    from: '? "duplicates the name of an earlier device"',
    to: "? undefined",
    promise: whole,
    seed: 135,
  },
  {
    name: "a device that a driver did not prepare is taken for prepared",
    file: "packages/agent/src/claims/prepared-claim.ts",
    from: "if (!answer) throw new",
    to: "if (!answer) continue;\n    if (!answer) throw new",
    promise: toldPrepared,
    seed: 228,
  },
  {
    name: "bounds: the lock of a claim that is not in use is kept",
    file: "packages/agent/src/claims/unpreparation.ts",
    from: "if (--lock.users === 0) this.#locks.delete(key);",
    to: "",
    promise: bounded,
    seed: 176,
  },
  {
    name: "requests: all ResourceSlices are compared every two seconds",
    file: "packages/agent/src/devices/sync/session.ts",
    from: "const restMs = comparedAt + periodMs - clock.monotonic();",
    to: "periodMs = 2_000;\n      const restMs = comparedAt + periodMs - clock.monotonic();",
    promise: bounded,
    seed: 32,
  },
  {
    name: "requests: all slices of a pool are written if one has changed",
    file: "packages/agent/src/devices/plan/plan.ts",
    from: "const rises = stored.length === 0 || isContested ||",
    to: "const rises = true || isContested ||",
    promise: bounded,
    seed: 176,
  },
  {
    name: "a claim is prepared again at each call of the kubelet",
    file: "packages/agent/src/claims/claim-records.ts",
    from: "return this.isLost(record) || this.#unproven",
    to: 'return record.state === "prepared" || this.#unproven',
    promise: calledOnce,
    seed: 33,
  },
  {
    name: "the record of an unprepared claim is left",
    file: "packages/agent/src/claims/unpreparation.ts",
    from: 'await records.remove(driver, uid);\n    log.info({ driver, claim: { namespace, name } }, "claim unprepared");',
    to: 'log.info({ driver, claim: { namespace, name } }, "claim unprepared");',
    promise: calledOnce,
    seed: 1,
  },
  {
    name: "every CDI file is taken for one of the agent",
    file: "packages/agent/src/claims/cdi-directory.ts",
    from: "return name.startsWith(PREFIX) && name.endsWith(SUFFIX);",
    to: "return name.endsWith(SUFFIX);",
    promise: foreignCdi,
    seed: 1,
  },
];
