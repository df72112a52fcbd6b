import type { AgentConfiguration } from "../config/index.ts";
import {
  ConditionReporter,
  ContainerDeaths,
  ContainerKiller,
  createEvictionRoundMetrics,
  createEvictorMetrics,
  createTaintMetrics,
  DeletionKiller,
  EvictionApiKiller,
  EvictionManager,
  EvictionPlugins,
  EvictionRecords,
  EvictionSender,
  type Killer,
  NodeTainter,
  PodEvictor,
  PodWatch,
  RecordQueries,
  reviewedTokens,
  storedTaints,
  type Tainter,
} from "../eviction/index.ts";
import type { EventRecorder, KubeApiClient, KubeMetrics } from "../kube/index.ts";
import type { Clock, HealthCheck, Logger, Registry, Runnable, WorkQueueMetrics } from "../lib/index.ts";
import type { PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import type { ReporterSource } from "../reporting/index.ts";
import type { CriRuntime, FoundRuntime } from "../runtime/index.ts";
import { EvictionStore, type StateDatabase } from "../state/index.ts";
import { evictionPolicyOf, evictionSettingsOf, killerTableOf } from "./eviction-settings.ts";
import { inTreeEviction } from "./in-tree-eviction.ts";
import { PolicyFiles } from "./policy-files.ts";

/** What eviction is built of. */
export interface EvictionAssembly {
  /** As it is now: eviction's settings change live. */
  configuration: () => AgentConfiguration;
  client: KubeApiClient;
  database: StateDatabase;
  events: EventRecorder;
  /** Where the container runtime is asked. */
  containers: { runtime: CriRuntime | FoundRuntime; lifecycle: PodLifecycleEventGenerator } | undefined;
  clock: Clock;
  log: Logger;
  registry: Registry;
  kubeMetrics: KubeMetrics;
  queueMetrics: WorkQueueMetrics;
}

/** Eviction as the agent runs it. */
export interface EvictionParts {
  /** In the order to start them. */
  parts: Runnable[];
  checks: HealthCheck[];
  plugins: EvictionPlugins;
  /** Tells conditions as taints of the CustomNodeResource. */
  reporter: ReporterSource;
  queries: RecordQueries;
  /** How many evicted pods are gone since the start. */
  evicted: () => number;
}

/** Builds eviction; the caller asks only where it is enabled. */
export function evictionOf(assembly: EvictionAssembly): EvictionParts {
  const { configuration, client, database, events, containers, clock, registry } = assembly;
  const { nodeName } = configuration();
  const log = assembly.log.child({ room: "eviction" });
  const policy = () => evictionPolicyOf(configuration());
  const settings = () => evictionSettingsOf(configuration());
  const roundMetrics = createEvictionRoundMetrics(registry);
  const metrics = createEvictorMetrics(registry);
  const common = { clock, log };

  const records = new EvictionRecords({
    store: new EvictionStore(database),
    settings: () => settings().records,
    ...common,
  });
  const pods = new PodWatch({
    client,
    nodeName,
    metrics: roundMetrics,
    kubeMetrics: assembly.kubeMetrics,
    ...common,
  });
  const tokenCheck = reviewedTokens(client);
  const inTree = inTreeEviction({ ...assembly, pods, runtime: containers?.runtime });
  const plugins = new EvictionPlugins({
    inTree: inTree.sources,
    settings,
    tokenCheck: () => (configuration().eviction.strict ? tokenCheck : undefined),
    metrics: roundMetrics,
    ...common,
  });
  const policyFiles = new PolicyFiles({
    files: () => configuration().eviction.policies.files,
    enabled: () => configuration().eviction.policies.enabled,
    plugins,
    sourcesOf: inTree.ofPolicies,
    ...common,
  });
  const marginMs = () => policy().releaseMarginMs;
  const killers: Killer[] = [new EvictionApiKiller(client), new DeletionKiller(client)];
  if (containers) {
    const { runtime, lifecycle } = containers;
    killers.push(new ContainerKiller({ runtime, statuses: lifecycle.statuses, clock, marginMs }));
  }
  const evictor = new PodEvictor({
    sender: new EvictionSender({
      client,
      nodeName,
      killers,
      killerTable: () => killerTableOf(configuration()),
      skip: () => policy().skip,
      events,
      clock,
      metrics,
    }),
    pods,
    containers:
      containers &&
      new ContainerDeaths({
        events: containers.lifecycle.events,
        statuses: containers.lifecycle.statuses,
        marginMs,
        ...common,
      }),
    policy,
    events,
    metrics,
    queueMetrics: assembly.queueMetrics,
    ...common,
  });
  const { taintPrefix: prefix } = policy();
  const nodeTainter = new NodeTainter({
    client,
    nodeName,
    prefix,
    events,
    metrics: createTaintMetrics(registry),
    kubeMetrics: assembly.kubeMetrics,
    queueMetrics: assembly.queueMetrics,
    ...common,
  });
  const conditions = new ConditionReporter(storedTaints(records, prefix).customNodeResource);
  const tainter: Tainter = {
    want({ node, customNodeResource }, isComplete) {
      nodeTainter.want(node, isComplete);
      conditions.want(customNodeResource, isComplete);
    },
  };
  const manager = new EvictionManager({
    nodeName,
    pods,
    plugins,
    evictor,
    tainter,
    records,
    events,
    settings,
    policy,
    metrics: roundMetrics,
    ...common,
  });
  return {
    parts: [pods, policyFiles, nodeTainter, evictor, manager],
    checks: [pods, policyFiles, plugins, manager, evictor, nodeTainter].map((part) => part.healthCheck()),
    plugins,
    reporter: conditions,
    queries: new RecordQueries(records),
    evicted: () => evictor.gone,
  };
}
