import type { KubeApiClient } from "@nodekeeper/core/kube";
import { type Clock, type Logger, processCpuMs, type Registry } from "@nodekeeper/core/lib";
import type { AgentConfiguration } from "../config/index.ts";
import type { EvictionSource, NodePods } from "../eviction/index.ts";
import { Host, HostReadings, PodReadings } from "../host/index.ts";
import {
  createInTreeEvictionMetrics,
  customNodeResourceAllocatable,
  inTreeEvictionSources,
} from "../intree/index.ts";
import { PodDisks, PodMemories } from "../pod-usage/index.ts";
import {
  createPolicyMetrics,
  HostNodeReadings,
  type Policy,
  podUsageOf,
  policySources,
} from "../policy/index.ts";
import { type CriRuntime, FoundRuntime, type RuntimeStats } from "../runtime/index.ts";
import { inTreeEvictionSettingsOf } from "./eviction-settings.ts";
import { imagePath } from "./image-path.ts";

/** What in-tree eviction plugins are built from. */
export interface InTreeEvictionAssembly {
  /** The current one: their settings change live, from the next round on. */
  configuration: () => AgentConfiguration;
  client: KubeApiClient;
  pods: NodePods;
  /** Asked for the memory of pods whose cgroups are not found; undefined where no runtime is used. */
  runtime: CriRuntime | FoundRuntime | undefined;
  clock: Clock;
  log: Logger;
  registry: Registry;
}

/** The in-tree eviction plugins and what they share. */
export interface InTreeEviction {
  /** Those that are enabled by name. */
  sources: EvictionSource[];
  /** Sampled between rounds. */
  host: Host;
  /** Discards readings of the machine, and takes the settings of the configuration, for a round that starts. */
  onRoundStart: () => void;
  /** Makes a plugin of each policy; they share readings with the others. */
  ofPolicies: (policies: readonly Policy[]) => EvictionSource[];
  /** The memory that a pod used when a plugin last asked, bytes; undefined where that is not known. */
  lastMemoryUsageOf: (uid: string) => number | undefined;
}

/** The in-tree eviction plugins. Throws `invalid` for a name that no plugin has. */
export function inTreeEviction(assembly: InTreeEvictionAssembly): InTreeEviction {
  const { client, pods, runtime, clock, log, registry } = assembly;
  let ofRound = assembly.configuration();
  const configuration = () => ofRound;
  const { hostRoot, nodeName, eviction } = ofRound;
  const host = new Host({ root: hostRoot, clock });
  const readings = new HostReadings({
    host,
    pods: new PodReadings({ root: hostRoot, clock }),
    clock,
    // All plugins of a round share a reading, and no round gets the readings of the one before.
    maxAgeMs: () => configuration().eviction.syncPeriod / 2,
  });
  const runtimeStats = runtime && statsOf(runtime);
  const memories = new PodMemories({ readings, runtimeStats, clock });
  const disks = new PodDisks({ runtimeStats, clock });
  const { nodefsPath, imagefsPath, containerfsPath } = eviction.policies;
  const rootfsPath = imagePath(
    containerfsPath || imagefsPath,
    runtime && ((signal) => runtime.containerFilesystem(signal)),
    clock,
  );
  const intreeLog = log.child({ logger: "intree" });
  const parts = {
    readings,
    memories,
    disks,
    rootfsPath,
    nodePods: () => pods.list(),
    // Asked only while there are reclaimed pods; ten thousand nodes ask the same API server.
    allocatable: customNodeResourceAllocatable({ client, nodeName, clock, maxAgeMs: 60_000 }),
    roundPeriodMs: () => configuration().eviction.syncPeriod,
    clock,
    log: intreeLog,
    metrics: createInTreeEvictionMetrics(registry),
  };
  const policyParts = {
    readings: new HostNodeReadings({
      readings,
      nodefsPath,
      imagefsPath: imagePath(imagefsPath, runtime && ((signal) => runtime.imageFilesystem(signal)), clock),
      containerfsPath: rootfsPath,
    }),
    podUsage: podUsageOf({ memories, disks, readings }),
    clock,
    cpuMs: processCpuMs,
    log: intreeLog,
    metrics: createPolicyMetrics(registry),
  };
  const settings = onceFor(configuration, inTreeEvictionSettingsOf);
  return {
    host,
    onRoundStart() {
      ofRound = assembly.configuration();
      readings.refresh();
    },
    sources: inTreeEvictionSources(eviction.inTreePlugins, parts, settings),
    ofPolicies: (policies) => policySources(policies, policyParts),
    lastMemoryUsageOf: (uid) => memories.lastOf(uid)?.usageBytes,
  };
}

function statsOf(runtime: CriRuntime | FoundRuntime): Pick<RuntimeStats, "pods"> {
  return runtime instanceof FoundRuntime ? { pods: (signal) => runtime.podStats(signal) } : runtime.stats;
}

// Settings are asked for several times a second; a configuration that changes is another object.
function onceFor<From extends object, To>(current: () => From, derive: (from: From) => To): () => To {
  let last: { from: From; derived: To } | undefined;
  return () => {
    const from = current();
    if (last?.from !== from) last = { from, derived: derive(from) };
    return last.derived;
  };
}
