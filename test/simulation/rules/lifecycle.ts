import { PodLifecycleClient, type PodLifecycleItem } from "@nodekeeper/sdk";
import { lifecycleDifferences } from "../../support/lifecycle-differences.ts";
import { mapDifferences } from "../../support/map-differences.ts";
import { type History, isBefore } from "../world/history.ts";
import { SHORT_LOG } from "../world/plan.ts";
import { awaited } from "../world/status.ts";
import type { World } from "../world/world.ts";
import { ConsumerView, short, stageOf } from "./consumer-view.ts";
import type { Rule } from "./rule.ts";

// Containers that the agent stops go on changing in the calm, and may do so while the cache is read.
const READINGS = 3;
const UNTIL_SEEN_MS = 2_000;

type Look = (item: PodLifecycleItem) => string | undefined;

/** Looks at each item of each consumer once. */
function eachItem(lookOf: (world: World) => Look): Rule["watch"] {
  return (world) => {
    const watched = world.consumers.map((consumer) => ({ consumer, look: lookOf(world), seen: 0 }));
    return () => {
      for (const each of watched) {
        const { consumer, look } = each;
        for (; each.seen < consumer.received.length; each.seen++) {
          const found = look(consumer.received[each.seen]!.item);
          if (found) return `${consumer.name}: ${found}`;
        }
      }
      return undefined;
    };
  };
}

/** Looks until nothing is found, but not for longer than the agent may take to see a change. */
async function untilSeen(world: World, look: () => string[] | Promise<string[]>): Promise<string[]> {
  const { scheduler } = world.machine;
  for (let reading = 1; ; reading++) {
    const found = await look();
    if (found.length === 0 || reading === READINGS) return found;
    await scheduler.run(scheduler.now + UNTIL_SEEN_MS);
  }
}

function consumerDifferences({ consumers, history }: World): string[] {
  const actual = Object.fromEntries(history.stages);
  return consumers.flatMap(({ name, received }) => {
    const view = new ConsumerView(() => true);
    for (const { item } of received) view.add(item);
    // A container that came and went between two lists was never reported.
    const told = Object.fromEntries(
      [...history.stages].map(([id, stage]) => [
        id,
        view.stages.get(id) ?? (stage === "removed" ? stage : "unknown"),
      ]),
    );
    return mapDifferences(`${name}: container`, actual, told);
  });
}

export const lifecycle: readonly Rule[] = [
  {
    promise:
      "A consumer is told each transition of a container once, in order, and without gaps, or how many events it has missed.",
    watch: eachItem(({ history, faults }) => {
      const view = new ConsumerView(
        () => history.boots.length > 0 || history.unwritten.length > 0 || faults.fullDisks !== undefined,
      );
      return (item) => view.add(item);
    }),
  },
  {
    promise: "A consumer is told no transition that has not happened.",
    watch: eachItem(
      ({ history }) =>
        (item) =>
          untrue(item, history),
    ),
  },
  {
    promise: "The status of a pod is at least as new as the event with which it is sent.",
    watch: eachItem(() => older),
  },
  {
    promise:
      "A consumer that continues at its cursor misses nothing, whatever happens to the agent, as long as its cursor is in the log.",
    watch: eachItem(({ plan, faults, history }) => {
      let begun = 0;
      return (item) => {
        if (item.kind !== "snapshot" || item.why !== "fellOff") return undefined;
        // The rule about transitions judges the number of missed events.
        if (plan.hasShortLog && (item.missed ?? 0) > SHORT_LOG) return undefined;
        // An agent that is killed while nothing can be written loses events, and says so.
        if (faults.fullDisks) return undefined;
        const most = logsBegun(history);
        if (item.missed === undefined && ++begun <= most) return undefined;
        return `${item.missed ?? "an unknown number of"} events are missing`;
      };
    }),
    atRest: ({ consumers }) =>
      consumers.flatMap(({ name, refusals }) => refusals.map((why) => `${name} is refused: ${why}`)),
  },
  {
    promise: "At rest a consumer knows of each container what the runtime has.",
    atRest: (world) => untilSeen(world, () => consumerDifferences(world)),
  },
  {
    promise: "At rest the cache of pods equals the runtime.",
    atRest: async (world) => {
      const { machine, runtime, consumers } = world;
      const client = machine.init.run(
        () => new PodLifecycleClient({ socket: consumers[0]!.socket, clock: machine.init.clock }),
      );
      let isAnswered = true;
      const found = await untilSeen(world, async () => {
        const read = machine.init.run(() => lifecycleDifferences(client, runtime.runtime));
        const differences = await awaited(world, read);
        isAnswered &&= differences !== undefined;
        return differences ?? [];
      });
      machine.init.run(() => client.close());
      return isAnswered ? found : ["getPods was not answered within 30 s"];
    },
  },
];

/**
 * Returns how often the event log may have restarted: after each boot, after each agent that could not write all of
 * it, and in each agent that continues when the disk becomes read-only.
 */
function logsBegun({ boots, lives, readOnly, unwritten }: History): number {
  const lost = unwritten.filter(({ to }) => Number.isFinite(to) && !boots.some(({ at }) => at === to));
  const survived = readOnly.filter(({ from }) =>
    lives.some(({ startedAt, endedAt = Number.POSITIVE_INFINITY }) => startedAt <= from && endedAt > from),
  );
  return boots.length + lost.length + survived.length;
}

function untrue(item: PodLifecycleItem, { stages }: History): string | undefined {
  if (item.kind === "bookmark") return undefined;
  const told =
    item.kind === "event"
      ? [{ id: item.event.container?.id, stage: stageOf(item.event) }]
      : item.pods.flatMap(({ containers }) => containers.map(({ id, state }) => ({ id, stage: state })));
  for (const { id, stage } of told) {
    if (id === undefined || stage === undefined || stage === "unknown") continue;
    const actual = stages.get(id);
    if (actual === undefined || isBefore(actual, stage))
      return `${short(id)} is ${stage}, and is ${actual ?? "not there"}`;
  }
  return undefined;
}

function older(item: PodLifecycleItem): string | undefined {
  if (item.kind !== "event" || !item.event.container || !item.event.status) return undefined;
  const { container, status } = item.event;
  const stage = stageOf(item.event);
  const read =
    [...status.sandboxes, ...status.containers].find(({ id }) => id === container.id)?.state ?? "removed";
  if (stage === undefined || read === "unknown" || !isBefore(read, stage)) return undefined;
  return `${item.event.type} of ${short(container.id)} comes with a status in which it is ${read}`;
}
