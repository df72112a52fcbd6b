import { TooManyWatches } from "@nodekeeper/api/errors";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { Clock, Logger, Registry } from "@nodekeeper/core/lib";
import { lifecycleSettingsOf, PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import { CriRuntime, FoundRuntime, type Runtime } from "../runtime/index.ts";
import {
  createLocalApiMetrics,
  LifecycleService,
  LocalApi,
  lifecycleDefinition,
  lifecycleRoutes,
} from "../server/index.ts";
import { LifecycleStore, type StateDatabase } from "../state/index.ts";
import type { AgentContext } from "./context.ts";
import type { AgentPart } from "./part.ts";

// Refused clients retry every few seconds.
const REFUSAL_LOG_INTERVAL_MS = 60_000;

/** The container runtime and the lifecycle of its pods. */
export interface LifecyclePart extends AgentPart {
  runtime: CriRuntime | FoundRuntime;
  generator: PodLifecycleEventGenerator;
}

/** Builds the tracking of pods and containers. Undefined if lifecycle is disabled. */
export function lifecyclePart(context: AgentContext): LifecyclePart | undefined {
  const { clock, log, registry, database } = context;
  const configuration = context.configuration();
  if (!configuration.lifecycle.enabled) return undefined;
  const runtime = containerRuntime(configuration, clock, log, registry);
  const generator = podLifecycle(configuration, runtime, database, clock, log, registry);
  const api = localApiOf(context, generator);
  return {
    runtime,
    generator,
    runnables: [generator, ...(api ? [api] : [])],
    checks: [generator.healthCheck(), ...(api ? [api.healthCheck()] : [])],
    routes: lifecycleRoutes(generator, clock),
  };
}

/**
 * Builds the client of the container runtime, at the configured endpoint or at the one that is detected. It connects at
 * the first call.
 */
function containerRuntime(
  configuration: AgentConfiguration,
  clock: Clock,
  log: Logger,
  registry: Registry,
): CriRuntime | FoundRuntime {
  const { endpoint, ...settings } = configuration.runtime;
  const options = { clock, log: log.child({ logger: "runtime" }), registry, settings };
  return endpoint === "" ? new FoundRuntime(options) : new CriRuntime({ ...options, endpoint });
}

/** Builds the pod lifecycle event generator. Each registry serves only one. */
function podLifecycle(
  configuration: AgentConfiguration,
  runtime: Runtime,
  database: StateDatabase,
  clock: Clock,
  log: Logger,
  registry: Registry,
): PodLifecycleEventGenerator {
  return new PodLifecycleEventGenerator({
    runtime,
    store: new LifecycleStore(database),
    clock,
    log: log.child({ logger: "lifecycle" }),
    registry,
    settings: lifecycleSettingsOf(configuration),
  });
}

/** Builds the API for other programs on the node. Undefined if it is disabled. */
function localApiOf(
  { configuration, clock, log, registry, watches }: AgentContext,
  lifecycle: PodLifecycleEventGenerator,
): LocalApi | undefined {
  const { api } = configuration();
  if (api.socket === "") return undefined;
  const apiLog = log.child({ logger: "server" });
  const { watchesRefused } = createLocalApiMetrics(registry);
  let refusalLoggedAt = Number.NEGATIVE_INFINITY;
  const onRefused = (problem: string) => {
    watchesRefused.inc();
    if (clock.monotonic() - refusalLoggedAt < REFUSAL_LOG_INTERVAL_MS) return;
    refusalLoggedAt = clock.monotonic();
    apiLog.warn({ errorId: TooManyWatches.id, problem }, "watch refused");
  };
  return new LocalApi({
    path: api.socket,
    addServices: (server, signal) => {
      server.add(lifecycleDefinition, new LifecycleService({ lifecycle, clock, signal, onRefused }));
    },
    clock,
    log: apiLog,
    watches,
  });
}
