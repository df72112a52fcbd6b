import type { AgentConfiguration } from "../config/index.ts";
import type { EvictionSource, NodePods } from "../eviction/index.ts";
import { Host, HostReadings, PodReadings } from "../host/index.ts";
import {
  createInTreeEvictionMetrics,
  createPolicyMetrics,
  customNodeResourceAllocatable,
  HostNodeReadings,
  inTreeEvictionSources,
  PodMemories,
  type Policy,
  podUsageOf,
  policySources,
} from "../intree/index.ts";
import type { KubeApiClient } from "../kube/index.ts";
import type { Clock, Logger, Registry } from "../lib/index.ts";
import { type CriRuntime, FoundRuntime, type RuntimeStats } from "../runtime/index.ts";
import { inTreeEvictionSettingsOf } from "./eviction-settings.ts";
import { imagePath } from "./image-path.ts";

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

/** Eviction plugins inside the agent. */
export interface InTreeEviction {
  /** Those that are enabled by name. */
  sources: EvictionSource[];
  /** Makes a plugin of each policy; they share readings with the others. */
  ofPolicies: (policies: readonly Policy[]) => EvictionSource[];
}

/** The in-tree eviction plugins. Throws for a name that nobody has. */
export function inTreeEviction(assembly: InTreeEvictionAssembly): InTreeEviction {
  const { configuration, client, pods, runtime, clock, log, registry } = assembly;
  const { hostRoot, nodeName, eviction } = configuration();
  const readings = new HostReadings({
    host: new Host({ root: hostRoot, clock }),
    pods: new PodReadings({ root: hostRoot, clock }),
    clock,
    // All plugins of a round share a reading, and no round gets the last one's.
    maxAgeMs: () => configuration().eviction.syncPeriod / 2,
  });
  const memories = new PodMemories({ readings, runtimeStats: runtime && statsOf(runtime), clock });
  const intreeLog = log.child({ room: "intree" });
  const parts = {
    readings,
    memories,
    nodePods: () => pods.list(),
    // Asked only while there are reclaimed pods; ten thousand nodes ask the same API server.
    allocatable: customNodeResourceAllocatable({ client, nodeName, clock, maxAgeMs: 60_000 }),
    clock,
    log: intreeLog,
    metrics: createInTreeEvictionMetrics(registry),
  };
  const { nodefsPath, imagefsPath } = eviction.policies;
  const policyParts = {
    readings: new HostNodeReadings({
      readings,
      nodefsPath,
      imagefsPath: imagePath(imagefsPath, runtime && ((signal) => runtime.imageFilesystem(signal)), clock),
    }),
    podUsage: podUsageOf(memories),
    clock,
    log: intreeLog,
    metrics: createPolicyMetrics(registry),
  };
  const settings = () => inTreeEvictionSettingsOf(configuration());
  return {
    sources: inTreeEvictionSources(eviction.inTreePlugins, parts, settings),
    ofPolicies: (policies) => policySources(policies, policyParts),
  };
}

function statsOf(runtime: CriRuntime | FoundRuntime): Pick<RuntimeStats, "pods"> {
  return runtime instanceof FoundRuntime ? { pods: (signal) => runtime.podStats(signal) } : runtime.stats;
}
