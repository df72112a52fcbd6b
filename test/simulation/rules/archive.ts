import { ExportLogsServiceRequest } from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import { type StoredLog, storedLogs } from "../../support/collector.ts";
import { allPages } from "../world/statements.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

// Records are exported every 5 s (`archive.interval`).
const EXPORTED_MS = 12_000;

export const archive: readonly Rule[] = [
  {
    promise:
      "After quiet, the archive has each eviction that the node has on record, with its outcome, or says that records are missing.",
    atRest: async (world) => {
      const logs = archived(world);
      if (logs === undefined) return [];
      const gaps = logs.filter(({ event }) => event === "nodekeeper.gap").map(({ body }) => body);
      const isMissed = (at: number) => gaps.some(({ from, to }) => from <= at && at <= to);
      const isSettled = (at: number) => at < world.machine.wall - EXPORTED_MS && !isMissed(at);
      const found = new Set(
        decisionsOf(logs).flatMap(({ uid, results }) => results.map((result) => `${uid} ${result}`)),
      );
      const evictions = await allPages(world, "eviction/evictions?since=0");
      return evictions
        .flatMap(({ uid, name, at, dryRun, outcome }) => [
          ...(dryRun ? [] : [{ uid, name, at, result: "selected" }]),
          // An unknown outcome may not have been recorded.
          ...(outcome && outcome.result !== "unknown" ? [{ uid, name, ...outcome }] : []),
        ])
        .filter(({ at, uid, result }) => isSettled(at) && !found.has(`${uid} ${result}`))
        .map(({ name, result }) => `${name}: ${result}`);
    },
  },
  {
    promise: "The archive has no eviction of a pod that nobody requested.",
    atRest: (world) =>
      decisionsOf(archived(world) ?? [])
        .filter(({ uid, results }) => results.includes("selected") && !mayBeRequested(world, uid))
        .map(({ name }) => name),
  },
  {
    promise: "A decision that the archive receives again has the same content.",
    atRest: (world) => {
      const known = new Map<string, string>();
      const decisions = (archived(world) ?? []).filter(isDecision);
      return decisions.flatMap(({ id, body, attributes }) => {
        const content = JSON.stringify({ body, attributes });
        const before = known.get(id);
        known.set(id, content);
        return before === undefined || before === content ? [] : [`${id}: ${content}, before ${before}`];
      });
    },
  },
];

/** Returns all that the collector has accepted, in order, with duplicates. Undefined without a collector. */
function archived({ collector }: World): StoredLog[] | undefined {
  return collector?.accepted.flatMap((body) =>
    storedLogs(ExportLogsServiceRequest.decode(body).resourceLogs),
  );
}

function isDecision({ event }: StoredLog): boolean {
  return event === "nodekeeper.eviction.decision";
}

function decisionsOf(logs: readonly StoredLog[]) {
  return logs.filter(isDecision).map(({ body, attributes }) => ({
    uid: String(attributes["k8s.pod.uid"]),
    name: String(attributes["k8s.pod.name"]),
    // A round may have the outcome of one eviction of the pod, and select it again.
    results: [attributes["nodekeeper.result"], body.outcome?.result].filter((each) => each !== undefined),
  }));
}

function mayBeRequested(world: World, uid: string): boolean {
  const { history, api, machine } = world;
  const name = api.pods.all.get(uid)?.name ?? "";
  return (
    history.namings.some((naming) => naming.uid === uid) ||
    world.unheard({ uid, name }, 0, machine.scheduler.now).length > 0
  );
}
