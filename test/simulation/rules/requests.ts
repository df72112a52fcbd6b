import type { Changes, Churn } from "../world/churn.ts";
import { type ApiWrite, isEvictionRequest } from "../world/history.ts";
import type { World } from "../world/world.ts";

/** Watches of the agent: pods, CustomNodeResource, ResourceSlices, and two of the Node, one of them by eviction. */
const WATCHES = 5;

/** Returns the number of the agent's watches, without those of claims. Pods that wait to be bound have one of their own. */
export function watchesOf({ plan }: World): number {
  return WATCHES + (plan.hasBinding ? 1 : 0);
}

/** Requests of one kind, and how many of them changes of the node account for. */
interface Kind {
  what: string;
  includes: RegExp;
  /**
   * @param evicted number of pods that the agent has tried to evict
   * @param hasBinding whether there are devices with binding conditions
   */
  most(changes: Changes, evicted: number, hasBinding: boolean): number;
}

// A published change is one write of each object it concerns. Pods, plugin restarts, consumers and the
// runtime cause no writes.
const kinds: readonly Kind[] = [
  {
    what: "writes of the CustomNodeResource and the Node",
    includes: /\/(customnoderesources|nodes)\//,
    // A plugin that is installed and removed reports, and withdraws; a condition is a taint.
    most: ({ reports, passingReporters, pressure }) => 2 * (reports + 2 * passingReporters) + pressure,
  },
  {
    what: "writes of ResourceSlices",
    includes: /\/resourceslices/,
    // A pool has up to two slices, of which each has the generation; a slice that is not needed any more is deleted, and the
    // first of a kind is written in dry run. Devices with binding conditions are one more kind.
    most: ({ devices, driverRestarts, passingDrivers }, _evicted, hasBinding) =>
      (hasBinding ? 6 : 4) * (devices + driverRestarts + passingDrivers),
  },
  {
    what: "evictions",
    includes: /\/eviction$/,
    // As often as an eviction is tried.
    most: (_changes, evicted) => 8 * evicted,
  },
  {
    what: "events",
    includes: /\/events/,
    // One per condition and device, two per eviction: on the pod and on the Node.
    most: ({ pressure, devices }, evicted) => pressure + devices + 2 * evicted,
  },
];

// A change that takes two writes because it was seen in two steps, and a repair.
const MARGIN = 20;

/** Counts the agent's requests while things come and go. */
export class RequestCount {
  readonly #world: World;
  readonly #churn: Churn;
  readonly #before: { writes: number; stops: number; requests: number; changes: Changes };

  constructor(world: World, churn: Churn) {
    this.#world = world;
    this.#churn = churn;
    const { history, api } = world;
    this.#before = {
      writes: history.writes.length,
      stops: history.stops.length,
      requests: api.requests,
      changes: { ...churn.changes },
    };
  }

  /** Returns the kinds of which the agent has sent more than the changes account for. */
  tooMany(): string[] {
    const { history, api } = this.#world;
    const { requests, changes: before } = this.#before;
    const now = Object.entries(this.#churn.changes) as [keyof Changes, number][];
    const changes = Object.fromEntries(
      now.map(([kind, count]) => [kind, count - before[kind]]),
    ) as unknown as Changes;
    const writes = history.writes.slice(this.#before.writes).filter(({ client }) => client === "nodekeeper");
    const evictions = writes.filter(isEvictionRequest);
    const evicted = new Set(evictions.map(({ path }) => path)).size;
    const counts = kinds.map(({ what, includes, most }) => ({
      what,
      count: writes.filter(({ path }) => includes.test(path)).length,
      most: most(changes, evicted, this.#world.plan.hasBinding),
    }));
    const reads = api.requests - requests - writes.filter(({ path }) => !isOfClaim(path)).length;
    const stops = history.stops.length - this.#before.stops;
    const writesOfNode = writes.filter(isOfNode).length;
    counts.push({
      what: "reads",
      count: reads,
      // Before its taints are written, the Node is read, and before a pod is evicted, the pod.
      most:
        watchesOf(this.#world) * (changes.watches + 1) + 2 * writesOfNode + 2 * (evictions.length + stops),
    });
    return counts
      .filter(({ count, most }) => count > most + MARGIN)
      .map(
        ({ what, count, most }) =>
          `${what}: ${count}, at most ${most + MARGIN} for ${JSON.stringify(changes)}`,
      );
  }
}

function isOfNode({ path }: ApiWrite): boolean {
  return path.startsWith("/api/v1/nodes/");
}

function isOfClaim(path: string): boolean {
  return path.includes("/resourceclaims/");
}
