import { NODE } from "../world/api-server.ts";
import type { Binding } from "../world/binding.ts";
import { ATTACHED, isReportedFor } from "../world/binding-driver.ts";
import { nodeOf, sameDevice, statusOf } from "../world/binding-scheduler.ts";
import { isReservedFor } from "../world/claim-scheduler.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

// Until a driver is told, and its report is written.
const SETTLED_MS = 20_000;

/** Judges a world that has devices with binding conditions, after each change of an object. */
function eachChange(look: (world: World, binding: Binding) => string | undefined): Rule["watch"] {
  return (world) => {
    const { binding } = world.devices;
    let revision = -1;
    return () => {
      const { store } = world.api;
      if (!binding || store.revision === revision) return undefined;
      revision = store.revision;
      return look(world, binding);
    };
  };
}

/** Judges at rest a world whose driver is installed and honest. */
function atRest(look: (world: World, binding: Binding) => string[]): Rule["atRest"] {
  return (world) => {
    const { binding } = world.devices;
    // After a refusal that only an operator can change, no status is written for five minutes.
    const isHeld = world.faults.apiOutages !== undefined;
    return binding?.driver.isWanted && !binding.driver.isLying && !isHeld ? look(world, binding) : [];
  };
}

export const binding: readonly Rule[] = [
  {
    promise: "A binding condition is written only to the allocation that its driver reported it for.",
    watch: eachChange((_world, { scheduler }) => {
      for (const { claim, allocation } of scheduler.allocated) {
        const { devices = [], allocation: current } = statusOf(claim);
        if (current?.allocationTimestamp !== allocation.allocatedAt) continue;
        const conditions = devices.flatMap(({ conditions = [] }) => conditions);
        const wrong = conditions.find(({ message }) => !isReportedFor(message, allocation));
        if (wrong)
          return `${claim.metadata.name}, allocated at ${allocation.allocatedAt}: ${wrong.type} is ${wrong.status}, "${wrong.message}"`;
      }
      return undefined;
    }),
  },
  {
    promise: "A driver takes no claim for deallocated that a pod waits for, or that is yet to be prepared.",
    watch: ({ devices, history }) => {
      const { binding, unpreparations } = devices;
      let seen = 0;
      return () => {
        const detachments = binding?.driver.detachments ?? [];
        for (; seen < detachments.length; seen++) {
          const { uid, allocatedAt } = detachments[seen]!;
          const current = binding!.scheduler.allocated.find(({ allocation }) => allocation.uid === uid);
          if (!current || current.allocation.allocatedAt !== allocatedAt) continue;
          const { claim, allocation } = current;
          // The kubelet may unprepare it for one pod when another one has just begun to wait. A boot unprepares all.
          const isUnprepared =
            unpreparations.some((each) => each.uid === uid && each.at >= allocation.at) ||
            history.boots.some(({ at }) => at >= allocation.at);
          const isForgotten = history.unwritten.some(({ to }) => to >= allocation.at);
          // What could not be unprepared for an earlier pod has a record, and counts as prepared.
          const isLeft = devices.kubelet.failedUnprepares.some(
            ({ key, at }) => key.endsWith(`/${uid}`) && at < allocation.at,
          );
          if (isUnprepared || isForgotten || isLeft) continue;
          const pod = binding!.scheduler.pods.find((each) => isReservedFor(claim, each));
          if (pod) return `${claim.metadata.name} of ${pod.metadata.name}`;
        }
        return undefined;
      };
    },
  },
  {
    promise: "A driver is told of allocations that there were, and of no others.",
    watch: (world) => {
      let seen = 0;
      return () => {
        const { binding } = world.devices;
        const lists = binding?.driver.toldLists ?? [];
        for (; seen < lists.length; seen++)
          for (const { uid, allocatedAt } of lists[seen]!.claims)
            if (
              !binding!.scheduler.allocations.some(
                (each) => each.uid === uid && each.allocatedAt === allocatedAt,
              )
            )
              return `${uid} of ${allocatedAt}`;
        return undefined;
      };
    },
  },
  {
    promise:
      "A claim that is allocated anew is left out of a list first, unless the agent can't know what the driver was told.",
    watch: (world) => {
      const { devices, history } = world;
      const forgotten = lastForgotten(world);
      let seen = 0;
      return () => {
        const forgottenAt = forgotten();
        const lists = devices.binding?.driver.toldLists ?? [];
        for (; seen < lists.length; seen++) {
          const { at, claims } = lists[seen]!;
          const before = lists[seen - 1];
          if (!before?.isAnswered || before.isLate || isBetween(forgottenAt, before.at, at)) continue;
          if (history.lives.some((life) => isBetween(life.startedAt, before.at, at))) continue;
          for (const { uid, allocatedAt } of claims) {
            const earlier = before.claims.find((each) => each.uid === uid);
            if (earlier && earlier.allocatedAt !== allocatedAt)
              return `${uid} of ${allocatedAt} after ${earlier.allocatedAt}`;
          }
        }
        return undefined;
      };
    },
  },
  {
    promise: "What another client wrote to the status of a device stays while the claim is allocated.",
    watch: eachChange((_world, { checker }) => checker.changed()),
  },
  {
    promise: "At rest, a driver is told of exactly the claims that are allocated and that pods wait for.",
    atRest: atRest(({ machine, history, devices: { kubelet } }, { driver, scheduler }) => {
      const waiting = scheduler.pods.filter((pod) => !nodeOf(pod)).map(({ metadata }) => metadata.uid);
      const settled = scheduler.allocated.filter(
        ({ allocation }) => machine.scheduler.now - allocation.changedAt > SETTLED_MS,
      );
      const expected = settled.filter(({ claim }) =>
        statusOf(claim).reservedFor?.some(({ uid }) => waiting.includes(uid)),
      );
      const isRecent = (uid: string) =>
        scheduler.allocated.some(
          ({ allocation }) =>
            allocation.uid === uid && machine.scheduler.now - allocation.changedAt <= SETTLED_MS,
        );
      // The agent has no record of it any more, or could not write it, and the kubelet considers it prepared for the pod that
      // waited; or the kubelet's call for an earlier pod is under way.
      const isUnwritten = (uid: string) => {
        const { isPrepared = false, preparedAt = 0 } = kubelet.find(uid) ?? {};
        return isPrepared && history.unwritten.some(({ from, to }) => from <= preparedAt && to >= preparedAt);
      };
      const isNeverPrepared = (uid: string) =>
        kubelet.isUnpreparing(uid) ||
        isUnwritten(uid) ||
        kubelet.isUsedTooEarly(uid) ||
        (kubelet.find(uid)?.isAnswerLost && settled.some(({ allocation }) => allocation.uid === uid));
      return [
        ...expected
          .filter(({ allocation }) => !driver.told.has(allocation.uid))
          .map(({ claim }) => `it is not told of ${claim.metadata.name}`),
        ...[...driver.told]
          .filter((told) => !isRecent(told) && !isNeverPrepared(told))
          .filter((told) => !expected.some(({ allocation }) => allocation.uid === told))
          .map((told) => `it is told of ${told}`),
      ];
    }),
  },
  {
    promise: "At rest, the conditions that a driver reports are those of its claims.",
    atRest: atRest(({ machine }, { driver, scheduler }) =>
      driver.statuses().flatMap(({ claimUid, pool, device, conditions = [] }) => {
        const found = scheduler.allocated.find(({ allocation }) => allocation.uid === claimUid);
        if (!found || machine.scheduler.now - found.allocation.changedAt <= SETTLED_MS) return [];
        const entry = statusOf(found.claim).devices?.find((each) =>
          sameDevice(each, { driver: driver.name, pool: pool || NODE, device }),
        );
        const wanted = conditions.find(({ type }) => type === ATTACHED)?.status;
        const actual = entry?.conditions?.find(({ type }) => type === ATTACHED)?.status;
        return actual === wanted
          ? []
          : [`${found.claim.metadata.name}: ${ATTACHED} is ${actual ?? "missing"}, not ${wanted}`];
      }),
    ),
  },
];

/** Returns a function to call after each step, which returns when the agent may last have forgotten the driver. */
function lastForgotten({ machine, devices: { binding, settings } }: World): () => number {
  const wipeDelayMs = Number.parseInt(String(settings.wipeDelay), 10) * 1_000;
  let awaySince: number | undefined;
  let forgottenAt = Number.NEGATIVE_INFINITY;
  return () => {
    const { now } = machine.scheduler;
    const { isRegistered = false, process } = binding?.driver ?? {};
    awaySince = isRegistered && !process?.isDead ? undefined : (awaySince ?? now);
    if (awaySince !== undefined && now - awaySince >= wipeDelayMs) forgottenAt = now;
    return forgottenAt;
  };
}

function isBetween(at: number, from: number, to: number): boolean {
  return at >= from && at <= to;
}
