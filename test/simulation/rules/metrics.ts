import { request } from "../world/status.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

export const metrics: readonly Rule[] = [
  {
    promise: "The counters of evictions of an agent that was never restarted agree with what happened.",
    atRest: async (world) => {
      const { history } = world;
      if (history.lives.length > 1) return [];
      const least = countsOf(world);
      const { body } = await request(world, "/metrics");
      // The world went on while the agent answered.
      const most = countsOf(world);
      const kills = body.replaceAll(/^.*killer="containerStop".*$/gm, "");
      const accepted = sumOf(kills, "nodekeeper_eviction_kills_total", 'result="accepted"');
      const terminated = sumOf(body, "nodekeeper_eviction_ended_total", 'outcome="terminated"');
      // An acceptance that did not arrive is not counted.
      const isAllHeard = history.lost.length === 0 && world.plan.faults.slow === 0;
      return [
        ...outside("accepted", accepted, isAllHeard ? least.accepted : 0, most.accepted),
        ...outside("terminated", terminated, isAllHeard ? least.gone : 0, most.accepted + most.stopped),
      ];
    },
  },
];

// The watch tells the agent that a pod is gone.
const UNTIL_COUNTED_MS = 15_000;

/** Counts evictions that were accepted, those whose pods are gone, and containers that were stopped. */
function countsOf({ history, api, machine }: World) {
  api.pods.look();
  const requested = history.evictions.flatMap(({ write, podUid }) => (write ? [podUid] : []));
  const stopped = new Set(history.stopEvictions.map(({ podUid }) => podUid));
  const gone = [...api.pods.all.values()].filter(
    ({ uid, endedBy, goneAt }) =>
      endedBy === "ours" &&
      !stopped.has(uid) &&
      goneAt !== undefined &&
      machine.scheduler.now - goneAt > UNTIL_COUNTED_MS,
  );
  // Of each eviction at least one. A container that exited by itself while the call was on its way counts as stopped.
  const exited = new Set(
    history.stops.flatMap(({ id, isSignalled, exitedAt, answeredAt }) =>
      (isSignalled ? exitedAt : answeredAt) === undefined ? [] : [id],
    ),
  );
  return { accepted: requested.length, gone: gone.length, stopped: exited.size };
}

function outside(what: string, count: number, least: number, most: number): string[] {
  return count >= least && count <= most ? [] : [`${what}: ${count}, and ${least} to ${most} were`];
}

/** Returns the sum of a metric's samples that have a label. */
function sumOf(page: string, name: string, label: string): number {
  const samples = page.matchAll(new RegExp(`^${name}{(.*)} (\\S+)$`, "gm"));
  return [...samples]
    .filter(([, labels = ""]) => labels.includes(label))
    .reduce((sum, [, , value]) => sum + Number(value), 0);
}
