import { evictionMode } from "@nodekeeper/api/decide";
import type { HealthCheck } from "@nodekeeper/core/lib";
import { apiRoute, type JsonRoute, listPlugins, runCheck } from "../server/index.ts";
import type { AgentContext } from "./context.ts";
import type { EvictionPart } from "./eviction.ts";
import type { LifecyclePart } from "./lifecycle.ts";
import type { PluginsPart } from "./plugins.ts";
import type { ReportingPart } from "./reporting.ts";

/** The parts that the node's summary covers. */
export interface SummarizedParts {
  reporting: ReportingPart;
  lifecycle: LifecyclePart | undefined;
  eviction: EvictionPart | undefined;
  plugins: PluginsPart;
}

/** Returns the route of the node's summary. */
export function nodeRoute(
  context: AgentContext,
  parts: SummarizedParts,
  checks: readonly HealthCheck[],
): JsonRoute {
  const { configuration, version, startedAt } = context;
  return apiRoute("node", () => {
    const { plugins, eviction } = parts;
    const { objects, pending, writes, lastWriteAt, problem, pods, events } = summaryOf(parts);
    const results = checks.map((check) => ({ name: check.name, kind: check.kind, ...runCheck(check) }));
    const rows = listPlugins({ ...plugins.known(), calls: new Map() });
    return {
      nodeName: configuration().nodeName,
      version,
      startedAt,
      health: { ok: results.every(({ ok }) => ok), checks: results },
      plugins: {
        registered: rows.filter(({ state }) => state === "registered" || state === "in-tree").length,
        failing: rows.filter(({ error }) => error !== undefined).length,
        refusing: rows.filter(({ problems }) => problems.length > 0).length,
      },
      refusedContent: rows.reduce((sum, { problems }) => sum + problems.length, 0),
      objects: { published: objects, pending, writes, lastWriteAt, problem },
      lifecycle: pods === undefined || events === undefined ? null : { pods, events },
      eviction: eviction ? evictionOf(context, eviction) : null,
    };
  });
}

function evictionOf({ configuration }: AgentContext, { evicted, queries }: EvictionPart) {
  const { dryRunPlugins } = configuration().eviction;
  return {
    mode: evictionMode({ dryRunPlugins }),
    dryRunPlugins,
    evicted: evicted(),
    conditions: queries.conditions,
  };
}

/** The agent's current figures. */
export interface AgentSummary {
  /** Reporter plugins that are connected. */
  plugins: number;
  objects: number;
  /** Pods in the container runtime; undefined if lifecycle is disabled. */
  pods: number | undefined;
  /** Lifecycle events emitted so far, also by earlier processes of the agent; undefined if lifecycle is disabled. */
  events: number | undefined;
  /** Pods evicted since the start: deleted, or their containers stopped. Undefined if eviction is disabled. */
  evicted: number | undefined;
  /** Objects with unwritten changes. */
  pending: number;
  /** Writes accepted by the API server since the start. */
  writes: number;
  /** Wall milliseconds. */
  lastWriteAt: number | undefined;
  /** Why an object can't be published. */
  problem: string | undefined;
}

export function summaryOf({ reporting, lifecycle, eviction }: SummarizedParts): AgentSummary {
  const { manager, publisher } = reporting;
  const objects = publisher.status();
  const writes = objects.flatMap(({ lastWriteAt }) => lastWriteAt ?? []);
  return {
    plugins: manager.status().filter(({ state }) => state === "running").length,
    objects: objects.length,
    pods: lifecycle?.generator.statuses.uids().length,
    events: lifecycle?.generator.events.last,
    evicted: eviction?.evicted(),
    pending: objects.filter(({ pending }) => pending).length,
    writes: objects.reduce((sum, { writes }) => sum + writes, 0),
    lastWriteAt: writes.length > 0 ? Math.max(...writes) : undefined,
    problem: objects.find(({ lastError }) => lastError)?.lastError,
  };
}
