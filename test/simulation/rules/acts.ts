import { CNRS, NODE } from "../world/api-server.ts";
import type { ApiWrite, History } from "../world/history.ts";
import { protectedNames } from "../world/node.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

/** Looks at each write of the agent once, when it was answered. */
export function eachWrite(
  look: (world: World, write: World["history"]["writes"][number]) => string | undefined,
): NonNullable<Rule["watch"]> {
  return (world) => {
    let seen = 0;
    return () => {
      const { writes } = world.history;
      for (; seen < writes.length; seen++) {
        const write = writes[seen]!;
        const found = write.client === "nodekeeper" ? look(world, write) : undefined;
        if (found) return found;
      }
      return undefined;
    };
  };
}

/** The same for evictions that were accepted. */
function eachEviction(
  look: (
    world: World,
    eviction: World["history"]["evictions"][number],
    earlier: World["history"]["evictions"],
  ) => string | undefined,
): Rule["watch"] {
  return (world) => {
    let writes = 0;
    let seen = 0;
    return () => {
      if (world.history.writes.length === writes) return undefined;
      writes = world.history.writes.length;
      const { evictions } = world.history;
      for (; seen < evictions.length; seen++) {
        const found = look(world, evictions[seen]!, evictions.slice(0, seen));
        if (found) return found;
      }
      return undefined;
    };
  };
}

function publishedOf({ store }: World["api"], reporter: string): string | undefined {
  const { status } = (store.get(CNRS, NODE) ?? {}) as {
    status?: { resources?: { capacity?: Record<string, string> } };
  };
  return status?.resources?.capacity?.[`widgets.example/${reporter}`];
}

// A plugin's answer is acted on in the round in which it was given, or by an agent that was started after a kill and
// finds the decision recorded.
const LONGEST_ROUND_MS = 60_000;

/**
 * An eviction counts from when the agent learns that it was accepted. Where it does not, because the response was lost
 * or the agent ended, it counts from its decision.
 */
function marginOf({ at, isDelivered }: ApiWrite, { lives }: History): number {
  const isKnown =
    isDelivered &&
    !lives.some(({ endedAt }) => endedAt !== undefined && endedAt >= at && endedAt < at + 1_000);
  return isKnown ? 1_000 : 20_000;
}

const CNR_STATUS = /\/customnoderesources\/[^/]+\/status$/;

export const acts: readonly Rule[] = [
  {
    promise: "Labels, annotations and taints of other owners stay as they wrote them.",
    watch: eachWrite(({ otherWriters }, { method, path }) => {
      const changed = otherWriters.changed();
      return changed && `after ${method} ${path}: ${changed}`;
    }),
  },
  {
    promise:
      "What is published of a reporter is what it reported, never goes back to an earlier report, and stays while the reporter is away.",
    watch: (world) => {
      // A delayed apply, for example of an agent that was killed meanwhile, overwrites a later one until it is repaired.
      if (world.plan.faults.slow > 0) return () => undefined;
      const last = new Map(world.reporters.map(({ name }) => [name, -1]));
      const look = eachWrite(({ api, reporters }, { path, status }) => {
        if (status >= 300 || !CNR_STATUS.test(path)) return undefined;
        for (const { name, reports } of reporters) {
          const published = publishedOf(api, name);
          const before = last.get(name)!;
          const at = reports.findIndex((value, index) => index >= before && `${value}` === `${published}`);
          if (at < 0 && published === undefined && before < 0) continue;
          if (at < 0) return `${name}: ${published ?? "nothing"} after ${reports[before] ?? "nothing"}`;
          last.set(name, at);
        }
        return undefined;
      });
      return look(world);
    },
  },
  {
    promise: "No pod is evicted twice.",
    watch: eachEviction((_world, { podUid, path, isLate }, earlier) =>
      // The agent looks at the pod before it sends again, but can't see a request that is still on its way.
      !isLate && earlier.some((other) => other.podUid === podUid && !other.isLate)
        ? `${path} is evicted again`
        : undefined,
    ),
  },
  {
    promise: "No critical, static, mirror or DaemonSet pod is evicted.",
    watch: eachWrite((_world, { method, path }) =>
      /eviction$/.test(path) &&
      method === "POST" &&
      protectedNames.some((name) => path.includes(`/pods/${name}`))
        ? `${method} ${path}`
        : undefined,
    ),
  },
  {
    promise: "A request to evict a pod names its UID, so that no other pod of this name is evicted.",
    watch: eachEviction((_world, { podUid, path, body }) => {
      const { deleteOptions } = body as { deleteOptions?: { preconditions?: { uid?: string } } };
      return deleteOptions?.preconditions?.uid === podUid ? undefined : path;
    }),
  },
  {
    promise: "An Event says that a pod was evicted only if the API server has accepted its eviction.",
    watch: eachWrite(({ history }, { path, body }) => {
      if (!path.endsWith("/events")) return undefined;
      const { reason, involvedObject: pod } = body as {
        reason?: string;
        involvedObject?: { name: string; uid?: string };
      };
      if (reason !== "Evicted" || history.evictions.some(({ podUid }) => podUid === pod?.uid))
        return undefined;
      return `${pod?.name} was not evicted`;
    }),
  },
  {
    promise: "No pod is evicted that no plugin has named in this round.",
    watch: eachEviction(({ history }, { podUid, path, at }) => {
      const named = history.namings.findLast(({ uid }) => uid === podUid);
      if (!named) return `${path}: no plugin has named it`;
      return at - named.at > LONGEST_ROUND_MS
        ? `${path}: named ${Math.round((at - named.at) / 1_000)} s ago by ${named.plugin}`
        : undefined;
    }),
  },
  {
    promise: "No more pods are evicted in a window than the limit allows, over all restarts.",
    watch: eachEviction(({ plan, history }, { at, path, isLate }, earlier) => {
      if (plan.limitPerNode === 0 || isLate) return undefined;
      const within =
        earlier.filter(
          (other) => !other.isLate && at - other.at < plan.limitWindowMs - marginOf(other, history),
        ).length + 1;
      return within > plan.limitPerNode
        ? `${path} is number ${within} within ${plan.limitWindowMs / 1_000} s, allowed are ${plan.limitPerNode}`
        : undefined;
    }),
  },
  {
    promise: "Dry run writes nothing about eviction.",
    watch: eachWrite(({ plan }, { method, path, body }) => {
      if (!plan.isDryRun) return undefined;
      if (/\/(eviction|pods\/[^/]+)$/.test(path)) return `${method} ${path}`;
      return /\/nodes\/[^/]+/.test(path) && JSON.stringify(body).includes("taints")
        ? `${method} ${path}: taints`
        : undefined;
    }),
  },
];
