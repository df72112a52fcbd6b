import { type HealthCheck, NodekeeperError } from "@nodekeeper/core/lib";
import {
  createReportingMetrics,
  fieldOrigins,
  kindPolicies,
  Publisher,
  ReporterManager,
} from "../reporting/index.ts";
import { apiRoute } from "../server/index.ts";
import { ReporterStore } from "../state/index.ts";
import { type AgentContext, FIELD_MANAGER } from "./context.ts";
import type { DevicesPart } from "./devices.ts";
import type { EvictionPart } from "./eviction.ts";
import { inTreeReporters } from "./in-tree-reporters.ts";
import type { LifecyclePart } from "./lifecycle.ts";
import type { AgentPart } from "./part.ts";

// Running plugins are found by the first scan, and asked at once.
const RETURN_MS = 10_000;

/** Reporters and what is published of them. */
export interface ReportingPart extends AgentPart {
  manager: ReporterManager;
  publisher: Publisher;
}

/** The parts that report themselves, and that in-tree reporters ask. */
export interface ReportedParts {
  lifecycle: LifecyclePart | undefined;
  devices: DevicesPart;
  eviction: EvictionPart | undefined;
}

/** Builds the way of reports to the API server. */
export function reportingPart(
  context: AgentContext,
  { lifecycle, devices, eviction }: ReportedParts,
): ReportingPart {
  const { configuration, client, clock, registry, queueMetrics, turns, watch } = context;
  const { nodeName, reporting, plugins } = configuration();
  const store = new ReporterStore(context.database);
  const policies = kindPolicies(reporting.additionalKinds);
  const log = context.log.child({ logger: "reporting" });
  const metrics = createReportingMetrics(registry);
  const settings = () => configuration().reporting;
  const notify = (reason: string, message: string) => context.notify({ type: "Warning", reason, message });
  const manager: ReporterManager = new ReporterManager({
    store,
    policies,
    inTree: [
      ...inTreeReporters(configuration(), lifecycle?.generator, devices.sync, clock, context.log, registry),
      ...(eviction ? [eviction.reporter] : []),
    ],
    settings,
    maxLost: plugins.maxPlugins,
    returnMs: RETURN_MS,
    maxContentBytes: reporting.maxContentSize,
    onChange: (objects) => publisher.touch(objects),
    notify,
    turns,
    clock,
    log,
    metrics,
  });
  const publisher = new Publisher({
    client,
    fieldManager: FIELD_MANAGER,
    watch: (resource, name, handler) => watch({ resource, fieldSelector: `metadata.name=${name}`, handler }),
    store,
    nodeName,
    policies,
    contents: () => manager.contents(),
    lost: () => manager.lost(),
    returnMs: RETURN_MS,
    beforeWrite: () => manager.flush(),
    notify,
    isFrozenTaint: (taint) => eviction?.isFrozenTaint(taint) ?? false,
    settings,
    turns,
    clock,
    log,
    metrics,
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
