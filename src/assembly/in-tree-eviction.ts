import type { AgentConfiguration } from "../config/index.ts";
import type { EvictionSource, NodePods } from "../eviction/index.ts";
import { Host, HostReadings, PodReadings } from "../host/index.ts";
import {
  createInTreeEvictionMetrics,
  customNodeResourceAllocatable,
  inTreeEvictionSources,
  PodMemories,
} from "../intree/index.ts";
import type { KubeApiClient } from "../kube/index.ts";
import type { Clock, Logger, Registry } from "../lib/index.ts";
import { type CriRuntime, FoundRuntime, type RuntimeStats } from "../runtime/index.ts";
import { inTreeEvictionSettingsOf } from "./eviction-settings.ts";

/** What in-tree eviction plugins are built of. */
export interface InTreeEvictionAssembly {
  /** As it is now: their settings change live. */
  configuration: () => AgentConfiguration;
  client: KubeApiClient;
  pods: NodePods;
  /** Asked for memory of pods whose cgroups are not found; undefined where no runtime is asked. */
  runtime: CriRuntime | FoundRuntime | undefined;
  clock: Clock;
  log: Logger;
  registry: Registry;
}

/** The in-tree eviction plugins that are enabled. Throws for a name that nobody has. */
export function inTreeEviction(assembly: InTreeEvictionAssembly): EvictionSource[] {
  const { configuration, client, pods, runtime, clock, log, registry } = assembly;
  const { hostRoot, nodeName, eviction } = configuration();
  const readings = new HostReadings({
    host: new Host({ root: hostRoot, clock }),
    pods: new PodReadings({ root: hostRoot, clock }),
    clock,
    // All plugins of a round share a reading, and no round gets the last one's.
    maxAgeMs: () => configuration().eviction.syncPeriod / 2,
  });
  const parts = {
    readings,
    memories: new PodMemories({ readings, runtimeStats: runtime && statsOf(runtime), clock }),
    nodePods: () => pods.list(),
    allocatable: customNodeResourceAllocatable({ client, nodeName, clock }),
    clock,
    log: log.child({ room: "intree" }),
    metrics: createInTreeEvictionMetrics(registry),
  };
  return inTreeEvictionSources(eviction.inTreePlugins, parts, () =>
    inTreeEvictionSettingsOf(configuration()),
  );
}

function statsOf(runtime: CriRuntime | FoundRuntime): Pick<RuntimeStats, "pods"> {
  return runtime instanceof FoundRuntime ? { pods: (signal) => runtime.podStats(signal) } : runtime.stats;
}
