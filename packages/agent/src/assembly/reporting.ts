import { type HealthCheck, NodekeeperError, readBootTime } from "@nodekeeper/core/lib";
import {
  createReportingMetrics,
  fieldOrigins,
  kindPolicies,
  Publisher,
  ReporterManager,
  type ReportingContext,
} from "../reporting/index.ts";
import { apiRoute } from "../server/index.ts";
import { ReporterStore } from "../state/index.ts";
import { type AgentContext, FIELD_MANAGER } from "./context.ts";
import type { DevicesPart } from "./devices.ts";
import type { EvictionPart } from "./eviction.ts";
import { inTreeReporters } from "./in-tree-reporters.ts";
import type { LifecyclePart } from "./lifecycle.ts";
import type { AgentPart } from "./part.ts";

// Running plugins are found by the first scan, which calls them immediately.
const RETURN_MS = 10_000;

/** Reporter plugins and the publisher of their reports. */
export interface ReportingPart extends AgentPart {
  manager: ReporterManager;
  publisher: Publisher;
}

/** The parts that in-tree reporters read, or that are reporters. */
export interface ReportedParts {
  lifecycle: LifecyclePart | undefined;
  devices: DevicesPart;
  eviction: EvictionPart | undefined;
}

/** Builds reporting, from plugins to the API server. */
export function reportingPart(
  context: AgentContext,
  { lifecycle, devices, eviction }: ReportedParts,
): ReportingPart {
  const { configuration, client, clock, registry, queueMetrics, turns, watch } = context;
  const { nodeName, reporting } = configuration();
  const reportingContext: ReportingContext = {
    store: new ReporterStore(context.database),
    policies: kindPolicies(reporting.additionalKinds),
    settings: () => configuration().reporting,
    returnMs: RETURN_MS,
    bootTime: readBootTime,
    notify: (reason, message) => context.notify({ type: "Warning", reason, message }),
    turns,
    clock,
    log: context.log.child({ logger: "reporting" }),
    metrics: createReportingMetrics(registry, () => manager.contentAges()),
  };
  const manager: ReporterManager = new ReporterManager(reportingContext, {
    inTree: [
      ...inTreeReporters(context, lifecycle?.generator, devices.sync),
      ...(eviction ? [eviction.reporter] : []),
    ],
    maxContentBytes: reporting.maxContentSize,
    onChange: (objects) => publisher.touch(objects),
  });
  const publisher = new Publisher(reportingContext, {
    client,
    fieldManager: FIELD_MANAGER,
    watch,
    nodeName,
    reports: manager,
    isFrozenTaint: (taint) => eviction?.isFrozenTaint(taint) ?? false,
    onFrozenTaints: (taints) => eviction?.leavesTaints(taints),
    queueMetrics,
  });
  const checks: HealthCheck[] = [
    { name: "ReporterFetcherReady", kind: "ready", check: () => manager.fetcherHealth() },
    { name: "ReporterPublished", kind: "ready", check: () => publisher.health() },
  ];
  return {
    manager,
    publisher,
    runnables: [publisher, manager],
    checks,
    routes: [
      apiRoute("objects", () => publisher.status()),
      apiRoute("objects/fields", ({ object, limit, continue: after = "" }) => {
        if (publisher.status().some((each) => each.object === object))
          return fieldOrigins(object, manager.contents(), { after, limit, lost: manager.lost() });
        throw noObject(object);
      }),
      apiRoute("objects/content", ({ object }) => {
        const found = publisher.content(object);
        if (found) return { object, ...found };
        throw noObject(object);
      }),
    ],
  };
}

function noObject(object: string): NodekeeperError {
  return new NodekeeperError("notFound", `no published object ${object}; /api/v1/objects lists them`);
}
