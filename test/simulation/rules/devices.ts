import { ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { allocatable } from "../../../packages/agent/src/devices/testing/allocatable.ts";
import { heldDevices } from "../../../packages/testing/src/kubelet/claims.ts";
import { NODE } from "../world/api-server.ts";
import type { Answer } from "../world/claim-kubelet.ts";
import { SLICES, type SliceSpec } from "../world/claim-scheduler.ts";
import { foreignSlices, isForeign, isStray } from "../world/devices.ts";
import { type Clash, keyOf } from "../world/drivers.ts";
import { unseenMs } from "../world/plan.ts";
import type { World } from "../world/world.ts";
import { eachWrite } from "./acts.ts";
import type { Rule } from "./rule.ts";

/** Looks once at each item of a list that grows. */
function each<T>(
  list: (world: World) => readonly T[],
  look: (world: World, item: T) => string | undefined,
): Rule["watch"] {
  return (world) => {
    let seen = 0;
    return () => {
      const items = list(world);
      for (; seen < items.length; seen++) {
        const found = look(world, items[seen]!);
        if (found) return found;
      }
      return undefined;
    };
  };
}

// Several messages, each of which may take long, and writes in between.
const WRITES_MS = 5_000;
const SLOW_WRITES = 10;
// Longest delay before a write is tried again, or before a slice that another client deleted is restored.
const LONGEST_DELAY_MS = 75_000;
// The agent reads the runtime just before it calls the driver. The simulated kubelet may restart a container of a deleted pod
// meanwhile; a real one does not.
const READ_MS = 100;
// How long the kubelet and the agent may take for a claim of a pod that started or ended just before.
const UNDER_WAY_MS = 45_000;

export const devices: readonly Rule[] = [
  {
    promise: "The scheduler can allocate exactly the healthy devices that drivers last sent.",
    atRest: ({ devices: { installed, slicesOfOwnPools } }) => {
      const expected = installed.flatMap(({ healthy }) => healthy);
      const { devices: actual, pools } = allocatable(slicesOfOwnPools, NODE);
      return [
        ...pools.flatMap(({ driver, pool, reason }) => (reason ? [`${driver} ${pool}: ${reason}`] : [])),
        ...expected.filter((name) => !actual.includes(name)).map((name) => `${name} is not allocatable`),
        ...actual.filter((name) => !expected.includes(name)).map((name) => `${name} is allocatable`),
      ];
    },
  },
  {
    promise: "No ResourceSlice is left behind: each has the newest generation of its pool.",
    atRest: ({ devices: { slices } }) => {
      const pools = Map.groupBy(
        slices.map(({ metadata, spec }) => ({ name: metadata.name, ...(spec as SliceSpec) })),
        ({ driver, pool }) => `${driver} ${pool.name}`,
      );
      return [...pools].flatMap(([key, members]) => {
        const newest = Math.max(...members.map(({ pool }) => pool.generation));
        return members
          .filter(({ name, pool }) => pool.generation < newest && !isStray(name))
          .map(({ name, pool }) => `${name} of ${key} has generation ${pool.generation}, not ${newest}`);
      });
    },
  },
  {
    promise: "No pool is incomplete for longer than its writes take.",
    watch: (world) => {
      const since = new Map<string, { at: number; faults: number }>();
      let revision = -1;
      // What another client did to the pool may go unseen.
      const blindMs = unseenMs(world.plan);
      return () => {
        const now = world.machine.scheduler.now;
        if (world.api.store.revision === revision && since.size === 0) return undefined;
        const faults = faultsOf(world);
        if (world.api.store.revision !== revision) {
          revision = world.api.store.revision;
          const incomplete = allocatable(world.devices.slicesOfOwnPools, NODE).pools.filter(
            ({ reason }) => reason,
          );
          const keys = new Set(incomplete.map(({ driver, pool }) => `${driver} ${pool}`));
          for (const key of since.keys()) if (!keys.has(key)) since.delete(key);
          for (const key of keys) if (!since.has(key)) since.set(key, { at: now + blindMs, faults });
        }
        for (const [key, begun] of since) {
          // From the last fault on, which may delay its writes for long, and not while every write is refused.
          if (begun.faults !== faults || isOut(world))
            since.set(key, { at: now + LONGEST_DELAY_MS + blindMs, faults });
          else if (now - begun.at > WRITES_MS + SLOW_WRITES * world.plan.faults.slowestMs)
            return `${key} is incomplete for ${Math.round((now - begun.at) / 1_000)} s`;
        }
        return undefined;
      };
    },
  },
  {
    promise: "ResourceSlices of another owner are never changed.",
    watch: eachWrite((_world, { method, path }) =>
      path.includes("/resourceslices/") && isForeign(path.split("/").at(-1))
        ? `${method} ${path}`
        : undefined,
    ),
    atRest: ({ api }) =>
      foreignSlices
        .filter(({ metadata }) => !api.store.get(SLICES, metadata.name))
        .map(({ metadata }) => `${metadata.name} is gone`),
  },
  {
    promise: "CDI files of another owner are never changed.",
    atRest: ({ devices }) => (devices.isForeignCdiKept ? [] : ["it was changed or removed"]),
  },
  {
    promise: "No device, and no share of one, is prepared for two claims at one time.",
    watch: (world) => () =>
      world.devices.drivers.flatMap(({ clashes }) => clashes).find((clash) => !isUnknown(world, clash))?.what,
  },
  {
    promise: "A claim is unprepared once all containers of its pod have exited.",
    watch: each(
      ({ devices: { unpreparations } }) => unpreparations,
      (world, { at, uid, driver, devices: names }) => {
        const known = world.devices.kubelet.find(uid, driver);
        // Pods of the world start without their claims. A real kubelet starts no container before they are prepared.
        if (names.length === 0 || !known || known.preparedAt === 0) return undefined;
        return ranBefore(world, known.podUid, at - READ_MS)
          ? `${names} of ${uid}, whose pod ${known.podUid} runs`
          : undefined;
      },
    ),
  },
  {
    promise:
      "The kubelet is told that a claim is prepared only once its driver has prepared it, with its CDI file.",
    watch: each(
      ({ devices: { kubelet } }) => kubelet.answers,
      (world, answer) => untruthOf(world.devices, answer),
    ),
  },
  {
    promise: "Each allocated claim that a pod uses is prepared, and each other is unprepared.",
    atRest: (world) => {
      const { installed, kubelet } = world.devices;
      const used = settledClaims(world);
      return [
        ...used.flatMap(({ name, uid, driver, key }) => {
          const holder = installed.find((each) => each.name === driver)?.prepared.get(key);
          return holder === uid ? [] : [`${name}: ${key} is prepared for ${holder ?? "no claim"}`];
        }),
        ...installed.flatMap(({ name, prepared }) =>
          [...prepared]
            .filter(([, uid]) => !kubelet.wasUsedWithin(uid, UNDER_WAY_MS))
            .map(([key, uid]) => `${name}: ${key} is still prepared for ${uid}`),
        ),
      ];
    },
  },
  {
    promise: "CDI files are those of the prepared claims.",
    atRest: (world) => {
      const { kubelet, cdiFiles } = world.devices;
      const used = settledClaims(world);
      const expected = new Set(used.map(({ driver, uid }) => cdiFile(driver, uid)));
      const isEnding = (file: string) =>
        kubelet.wasUsedWithin(claimOf(file), UNDER_WAY_MS) || isOfOldRecord(world, claimOf(file));
      return [
        ...used
          .filter(
            ({ device, driver, uid }) => !cdiFiles.get(cdiFile(driver, uid))?.includes(`"DEVICE=${device}"`),
          )
          .map(({ name, device }) => `${name}: no CDI file has ${device}`),
        ...[...cdiFiles.keys()]
          .filter((file) => !expected.has(file) && !isEnding(file))
          .map((file) => `${file} is of no claim`),
      ];
    },
  },
];

function isOut({ history, machine }: World): boolean {
  return history.apiOutages.some(({ to }) => to >= machine.scheduler.now);
}

function faultsOf({ faults, history }: World): number {
  return Object.values(faults).reduce((sum, count) => sum + count, history.lives.length);
}

function untruthOf(
  { drivers, cdiFiles, scheduler }: World["devices"],
  { known: { claim, driver, devices: allocated }, devices: answered }: Answer,
): string | undefined {
  // Its devices may be those of another claim by now.
  if (!scheduler.claims.some(({ metadata }) => metadata.uid === claim.uid)) return undefined;
  const file = cdiFiles.get(cdiFile(driver, claim.uid)) ?? "";
  for (const { pool, device, shareID } of allocated) {
    const holder = drivers.find(({ name }) => name === driver)?.prepared.get(keyOf(pool, device, shareID));
    if (holder !== claim.uid) return `${claim.name}: ${device} is prepared for ${holder ?? "no claim"}`;
    const { cdiDeviceIds = [] } = answered.find(({ deviceName }) => deviceName === device) ?? {};
    const isInFile = cdiDeviceIds.every((id) => file.includes(`"${id.split("=")[1]}"`));
    if (cdiDeviceIds.length === 0 || !isInFile) return `${claim.name}: no CDI file with ${cdiDeviceIds}`;
  }
  return undefined;
}

/** Returns whether a container of a pod runs that was started before a time, in virtual milliseconds. */
function ranBefore({ runtime: { runtime }, machine }: World, podUid: string, at: number): boolean {
  const wallAt = BigInt(Math.floor(machine.wall - machine.scheduler.now + at)) * 1_000_000n;
  return runtime
    .sandboxesOf(podUid)
    .flatMap(({ id }) => runtime.containersOf(id))
    .some(({ state, startedAt }) => state === ContainerState.CONTAINER_RUNNING && startedAt < wallAt);
}

function cdiFile(driver: string, uid: string): string {
  return `nodekeeper-${driver}_${uid}.yaml`;
}

function claimOf(cdiFile: string): string {
  return cdiFile.split("_")[1]?.replace(".yaml", "") ?? "";
}

/**
 * Returns whether a claim was unprepared by an agent that could not write this to its disk. For the next one it is a
 * claim that the kubelet never unprepares (docs/devices.md).
 */
function isOfOldRecord({ history, devices: { unpreparations } }: World, claim: string): boolean {
  const times = unpreparations.filter(({ uid }) => uid === claim).map(({ at }) => at);
  return history.unwritten.some(({ from, to }) => times.some((at) => at >= from && at <= to));
}

// If an agent can record nothing, the next one does not know of claims that are without a CDI file: their preparation has
// failed, or they are being unprepared (docs/operating.md).
function isUnknown({ history }: World, { takenAt }: Clash): boolean {
  const isOfEarlier = history.lives.some(({ startedAt }) => startedAt > takenAt);
  return isOfEarlier && history.unwritten.some(({ from, to }) => takenAt >= from && takenAt <= to);
}

/** Devices of claims whose pods have been running for long enough, and whose drivers are installed. */
function settledClaims({ devices: { scheduler, kubelet, installed }, machine, api }: World) {
  return scheduler.pods.flatMap(({ pod, claims }) =>
    claims.flatMap((claim) => {
      const { name = "", uid = "" } = claim.metadata;
      // For a pod that ended before another one used it.
      if (kubelet.isUnpreparing(uid) || kubelet.isUsedTooEarly(uid, pod.metadata.name)) return [];
      // The kubelet may not have seen a claim that was allocated, or a pod that was created, just before the rest.
      const createdAt = api.pods.all.get(pod.metadata.uid!)?.createdAt ?? 0;
      const since = kubelet.find(uid)?.since ?? Math.max(createdAt, scheduler.allocatedAt(uid));
      if (machine.scheduler.now - since < UNDER_WAY_MS) return [];
      const held = heldDevices(claim);
      if (held.some((each) => scheduler.wasSharedWithin(each, UNDER_WAY_MS))) return [];
      return (
        held
          .filter(({ driver }) => installed.some((each) => each.name === driver))
          // The agent has no record of it any more, and the kubelet considers it prepared for another pod.
          .filter(({ driver }) => !kubelet.find(uid, driver)?.isAnswerLost)
          .map(({ driver, pool, device, shareID }) => ({
            name,
            uid,
            driver,
            device,
            key: keyOf(pool, device, shareID),
          }))
      );
    }),
  );
}
