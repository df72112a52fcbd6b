import { mapDifferences } from "../../support/map-differences.ts";
import { CNRS, NODE, REJECTED } from "../world/api-server.ts";
import { isEvictionRequest } from "../world/history.ts";
import { KATALYST_RESOURCE } from "../world/katalyst-agent.ts";
import { FALSE_FIELD, type Reporter } from "../world/reporters.ts";
import { isDryRun, isFullDryRun, taintPrefixes, theirTaints } from "../world/settings.ts";
import { request } from "../world/status.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

/** A published field with its value. */
type Field = [name: string, value: string];

// An agent that cannot know which plugins to wait for removes no taint for a minute after its start (docs/eviction.md).
const UNTIL_REMOVED_MS = 65_000;

// What is due is written after this.
const UNTIL_WRITTEN_MS = 5_000;

export const rest: readonly Rule[] = [
  {
    promise: "After quiet, what plugins last reported is what is published, and nothing else.",
    atRest: ({ api, reporters, history, machine, reporterGraceMs }) => {
      // An agent that was started since then keeps what nobody reports: the state of the one before may be lost.
      const keptSince = machine.scheduler.now - reporterGraceMs - UNTIL_WRITTEN_MS;
      const mayKeep = history.lives.some(({ startedAt }) => startedAt >= keptSince);
      const isKept = (key: string) =>
        mayKeep && reporters.some(({ name, value }) => value === undefined && key.endsWith(`/${name}`));
      const cnr = api.store.get(CNRS, NODE) as {
        status?: { resources?: { capacity?: Record<string, string> } };
      };
      const published = cnr?.status?.resources?.capacity ?? {};
      const { labels = {} } = api.store.get("nodes", NODE)?.metadata ?? {};
      // The whole report of a liar may be refused.
      const honest = reporters.filter(({ falsehood }) => falsehood === undefined);
      const reported = honest.filter(({ value }) => value !== undefined);
      // A report that the API server has rejected as invalid, also alone, is tried again after ten minutes only, unless
      // it changes: the agent can't know that it was rejected by chance.
      const isRejected = ([field, value]: Field) =>
        history.writes.some(
          ({ client, status, body }) =>
            client === "nodekeeper" &&
            status === 422 &&
            !JSON.stringify(body).includes(REJECTED) &&
            JSON.stringify(body).includes(`"${field}":"${value}"`),
        );
      const differences = (what: string, expected: Field[], actual: Field[]) => {
        const rejected = new Set(expected.filter(isRejected).map(([field]) => field));
        const judged = (fields: Field[]) =>
          Object.fromEntries(fields.filter(([field]) => !rejected.has(field)));
        return mapDifferences(what, judged(expected), judged(actual));
      };
      return [
        ...differences(
          "capacity",
          reported.map(({ name, value }) => [`widgets.example/${name}`, `${value}`]),
          Object.entries(published).filter(
            ([key]) => key !== KATALYST_RESOURCE && !isOfLiar(reporters, key) && !isKept(key),
          ),
        ),
        ...differences(
          "label",
          reported.map(({ name, value }) => [`example.dev/${name}`, `v${value}`]),
          Object.entries(labels).filter(
            ([key]) => key.startsWith("example.dev/") && !isOfLiar(reporters, key) && !isKept(key),
          ),
        ),
      ];
    },
  },
  {
    promise: "A taint is on the Node while its condition is reported, and is removed when it no longer is.",
    atRest: ({ api, evictionPlugins, operator, policies, inTree, history, machine }) => {
      const { settings } = operator;
      const startedAt = history.lives.at(-1)?.startedAt ?? 0;
      const mayKeep = machine.scheduler.now - startedAt < UNTIL_REMOVED_MS;
      // They stay as they were.
      if (isFullDryRun(settings)) return [];
      const { spec } = api.store.get("nodes", NODE) as { spec?: { taints?: { key: string }[] } };
      const keys = (spec?.taints ?? [])
        .map(({ key }) => key)
        .filter(
          (key) => taintPrefixes.some((prefix) => key.startsWith(prefix)) && !theirTaints.includes(key),
        );
      const expected = evictionPlugins
        .filter(({ hasCondition, pressure }) => hasCondition && pressure !== "none")
        .filter(({ name }) => !isDryRun(settings, name))
        .map(({ condition }) => `${settings.taintPrefix}/${condition.name}`);
      for (const { name, falseCondition } of evictionPlugins) {
        if (falseCondition?.isTaint && !isDryRun(settings, name))
          expected.push(`${settings.taintPrefix}/${falseCondition.condition.name}`);
      }
      if (policies.condition && !isDryRun(settings, policies.plugin))
        expected.push(`${settings.taintPrefix}/${policies.condition}`);
      const { condition } = inTree;
      if (condition && !isDryRun(settings, condition.plugin))
        expected.push(`${settings.taintPrefix}/${condition.name}`);
      const judged = mayKeep ? keys.filter((key) => expected.includes(key)) : keys;
      return mapDifferences("taint", asMap(expected), asMap(judged));
    },
  },
  {
    promise: "If all is well, no health check fails.",
    atRest: async (world) => {
      const { status, body } = await request(world, "/readyz?verbose");
      const failed = body.split("\n").filter((line) => line.startsWith("[-]"));
      const unexpected = failed.filter((line) => !isExpected(line, world));
      return status === 200 || unexpected.length === 0 ? [] : [`/readyz: ${status}: ${failed.join("; ")}`];
    },
  },
  {
    promise: "The agent ends only when it is told to.",
    atRest: ({ agent }) => agent.failures,
  },
];

/**
 * Returns whether a check may fail because evictions were refused and none accepted since: without attempts, it fails
 * for ten minutes.
 */
export function isExpected(failed: string, { history, faults }: World): boolean {
  if (!failed.includes("EvictionKillerReady")) return false;
  const last = history.writes.findLast(isEvictionRequest);
  const lastStop = history.stops.at(-1);
  // Its failure is known when its deadline has passed at the latest.
  if (lastStop && lastStop.at > (last?.at ?? 0) && lastStop.answeredAt === undefined) return true;
  return faults.apiOutages !== undefined || (last !== undefined && last.status >= 300);
}

/** Returns whether a field is one of a reporter that lies. */
function isOfLiar(reporters: readonly Reporter[], field: string): boolean {
  const name = field.split("/")[1]?.replace(FALSE_FIELD, "");
  return reporters.some((reporter) => reporter.falsehood !== undefined && reporter.name === name);
}

function asMap(keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(keys.map((key) => [key, "there"]));
}
