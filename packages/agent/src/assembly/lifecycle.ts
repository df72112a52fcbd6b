import { TooManyWatches } from "@nodekeeper/api/errors";
import { TokenBucket } from "@nodekeeper/core/lib";
import { PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import { CriRuntime } from "../runtime/index.ts";
import {
  createRefusedWatches,
  LifecycleService,
  LocalApi,
  lifecycleDefinition,
  lifecycleRoutes,
} from "../server/index.ts";
import { LifecycleStore } from "../state/index.ts";
import type { AgentContext } from "./context.ts";
import type { AgentPart } from "./part.ts";

// Refused clients retry every few seconds.
const REFUSALS_LOGGED = { perSecond: 1 / 60, burst: 1 };

/** The container runtime and the lifecycle of its pods. */
export interface LifecyclePart extends AgentPart {
  runtime: CriRuntime;
  generator: PodLifecycleEventGenerator;
}

/**
 * Builds the tracking of pods and containers. Undefined if lifecycle is disabled. The runtime is at the configured
 * endpoint or at the one that is detected, and is connected at the first call.
 */
export function lifecyclePart(context: AgentContext): LifecyclePart | undefined {
  const { clock, log, registry, database } = context;
  const { lifecycle, runtime: settings } = context.configuration();
  if (!lifecycle.enabled) return undefined;
  const { endpoint } = settings;
  const runtime = new CriRuntime({
    endpoint,
    clock,
    log: log.child({ logger: "runtime" }),
    registry,
    settings,
  });
  const generator = new PodLifecycleEventGenerator({
    runtime,
    store: new LifecycleStore(database),
    clock,
    log: log.child({ logger: "lifecycle" }),
    registry,
    settings: { ...lifecycle, requestTimeout: settings.requestTimeout },
  });
  const api = localApiOf(context, generator);
  return {
    runtime,
    generator,
    runnables: [generator, ...(api ? [api] : [])],
    checks: [generator.healthCheck(), ...(api ? [api.healthCheck()] : [])],
    routes: lifecycleRoutes(generator, clock),
  };
}

/** Builds the API for other programs on the node. Undefined if it is disabled. */
function localApiOf(
  { configuration, clock, log, registry, watches }: AgentContext,
  lifecycle: PodLifecycleEventGenerator,
): LocalApi | undefined {
  const { api } = configuration();
  if (api.socket === "") return undefined;
  const apiLog = log.child({ logger: "server" });
  const refused = createRefusedWatches(registry);
  const logged = new TokenBucket(clock, REFUSALS_LOGGED);
  const onRefused = (problem: string) => {
    refused.inc();
    if (logged.tryTake()) apiLog.warn({ errorId: TooManyWatches.id, problem }, "watch refused");
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
