import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { KubeApiClient } from "@nodekeeper/core/kube";
import { type Clock, type Logger, processCpuMs, type Registry } from "@nodekeeper/core/lib";
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
  PolicySource,
  podUsageOf,
} from "../policy/index.ts";
import type { CriRuntime } from "../runtime/index.ts";
import { imagePath } from "./image-path.ts";

/** Readings of the machine and its pods, shared by in-tree plugins and policies. */
export interface NodeUsage {
  /** Sampled between rounds. */
  host: Host;
  readings: HostReadings;
  memories: PodMemories;
  disks: PodDisks;
  runtime: CriRuntime | undefined;
  /** The configuration of the current round. */
  configuration: () => AgentConfiguration;
  /** Starts a round: discards the readings and takes the current configuration. */
  refresh: () => void;
}

/**
 * @param runtime source of disk usage, and of memory usage of pods whose cgroups are not found; undefined if no runtime
 * is used
 */
export function nodeUsage(
  current: () => AgentConfiguration,
  runtime: CriRuntime | undefined,
  clock: Clock,
): NodeUsage {
  let ofRound = current();
  const { hostRoot } = ofRound;
  const host = new Host({ root: hostRoot, clock });
  const readings = new HostReadings({
    host,
    pods: new PodReadings({ root: hostRoot, clock }),
    clock,
    // All plugins of a round share a reading, and no round uses readings of an earlier round.
    maxAgeMs: () => ofRound.eviction.syncPeriod / 2,
  });
  return {
    host,
    readings,
    memories: new PodMemories({ readings, runtimeStats: runtime, clock }),
    disks: new PodDisks({ runtimeStats: runtime, clock }),
    runtime,
    configuration: () => ofRound,
    refresh() {
      ofRound = current();
      readings.refresh();
    },
  };
}

/** Dependencies of in-tree eviction plugins. */
export interface InTreeEvictionAssembly {
  usage: NodeUsage;
  client: KubeApiClient;
  pods: NodePods;
  clock: Clock;
  log: Logger;
  registry: Registry;
}

/** The in-tree eviction plugins. */
export interface InTreeEviction {
  /** The plugins that are enabled by name. */
  sources: EvictionSource[];
  /** Returns a new plugin for a policy. It shares readings with the in-tree plugins. */
  ofPolicy: (policy: Policy) => EvictionSource;
}

/** Builds the in-tree eviction plugins. Throws `invalid` for an unknown name. */
export function inTreeEviction({
  usage,
  client,
  pods,
  clock,
  log,
  registry,
}: InTreeEvictionAssembly): InTreeEviction {
  const { readings, memories, disks, runtime, configuration } = usage;
  const { nodeName, eviction } = configuration();
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
    // Read only while reclaimed pods exist, because ten thousand nodes share an API server.
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
  return {
    sources: inTreeEvictionSources(eviction.inTreePlugins, parts, () => configuration().eviction),
    ofPolicy: (policy) => new PolicySource({ ...policyParts, policy }),
  };
}
