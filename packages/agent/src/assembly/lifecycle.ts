import type { Clock, Logger, Registry } from "@nodekeeper/core/lib";
import type { AgentConfiguration } from "../config/index.ts";
import { lifecycleSettingsOf, PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import { CriRuntime, FoundRuntime, type Runtime, runtimeSettingsOf } from "../runtime/index.ts";
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

// Clients that are refused try again every few seconds.
const REFUSAL_LOG_INTERVAL_MS = 60_000;

/** The container runtime and what it runs. */
export interface LifecyclePart extends AgentPart {
  runtime: CriRuntime | FoundRuntime;
  generator: PodLifecycleEventGenerator;
}

/** Builds what follows pods and containers; undefined where lifecycle is off. */
export function lifecyclePart(context: AgentContext): LifecyclePart | undefined {
  const { clock, log, registry, database } = context;
  const configuration = context.configuration();
  if (!configuration.lifecycle.enabled) return undefined;
  const runtime = containerRuntime(configuration, clock, log, registry);
  const generator = podLifecycle(configuration, runtime, database, clock, log, registry);
  const api = localApiOf(configuration, generator, clock, log, registry);
  return {
    runtime,
    generator,
    runnables: [generator, ...(api ? [api] : [])],
    checks: [generator.healthCheck(), ...(api ? [api.healthCheck()] : [])],
    routes: lifecycleRoutes(generator, clock),
  };
}

/** The container runtime at the configured endpoint, or the one that is found. Connects at the first call. */
function containerRuntime(
  configuration: AgentConfiguration,
  clock: Clock,
  log: Logger,
  registry: Registry,
): CriRuntime | FoundRuntime {
  const { endpoint } = configuration.runtime;
  const settings = runtimeSettingsOf(configuration);
  const options = { clock, log: log.child({ logger: "runtime" }), registry, settings };
  return endpoint === "" ? new FoundRuntime(options) : new CriRuntime({ ...options, endpoint });
}

/** The pod lifecycle event generator. One for each registry. */
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

/** The API for other programs on the node; undefined where it is off. */
function localApiOf(
  { api }: AgentConfiguration,
  lifecycle: PodLifecycleEventGenerator,
  clock: Clock,
  log: Logger,
  registry: Registry,
): LocalApi | undefined {
  if (api.socket === "") return undefined;
  const apiLog = log.child({ logger: "server" });
  const { watchesRefused } = createLocalApiMetrics(registry);
  let refusalLoggedAt = Number.NEGATIVE_INFINITY;
  const onRefused = (problem: string) => {
    watchesRefused.inc();
    if (clock.monotonic() - refusalLoggedAt < REFUSAL_LOG_INTERVAL_MS) return;
    refusalLoggedAt = clock.monotonic();
    apiLog.warn({ errorId: "NK1713", problem }, "watch refused");
  };
  return new LocalApi({
    path: api.socket,
    addServices: (server, signal) => {
      server.add(lifecycleDefinition, new LifecycleService({ lifecycle, clock, signal, onRefused }));
    },
    clock,
    log: apiLog,
  });
}
