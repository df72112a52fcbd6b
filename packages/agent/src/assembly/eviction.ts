import type { EventRecorder, KubeApiClient, KubeMetrics } from "@nodekeeper/core/kube";
import {
  type Clock,
  type HealthCheck,
  type Logger,
  type Registry,
  type Runnable,
  readBootTime,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { AgentConfiguration } from "../config/index.ts";
import {
  ConditionReporter,
  ContainerDeaths,
  ContainerKiller,
  createEvictionRoundMetrics,
  createEvictorMetrics,
  createHostPathNotifierMetrics,
  createTaintMetrics,
  DeletionKiller,
  EvictionApiKiller,
  EvictionManager,
  EvictionPlugins,
  EvictionRecords,
  EvictionSender,
  HostPathNotifier,
  type Killer,
  NodeTainter,
  namingNode,
  OomEvents,
  PodEvictor,
  PodHistory,
  PodWatch,
  RecordQueries,
  reviewedTokens,
  storedTaints,
  type Tainter,
  ThresholdSampler,
} from "../eviction/index.ts";
import type { PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import type { ReporterSource } from "../reporting/index.ts";
import type { CriRuntime, FoundRuntime } from "../runtime/index.ts";
import { EvictionStore, HistoryStore, type StateDatabase } from "../state/index.ts";
import { evictionPolicyOf, evictionSettingsOf, killerTableOf } from "./eviction-settings.ts";
import { inTreeEviction } from "./in-tree-eviction.ts";
import { PolicyFiles } from "./policy-files.ts";

/** What eviction is built from. */
export interface EvictionAssembly {
  /** The current one: eviction's settings change live. */
  configuration: () => AgentConfiguration;
  client: KubeApiClient;
  database: StateDatabase;
  events: EventRecorder;
  /** Undefined where lifecycle is off and the container runtime is not used. */
  containers: { runtime: CriRuntime | FoundRuntime; lifecycle: PodLifecycleEventGenerator } | undefined;
  clock: Clock;
  log: Logger;
  registry: Registry;
  kubeMetrics: KubeMetrics;
  queueMetrics: WorkQueueMetrics;
}

/** The parts of eviction. */
export interface EvictionParts {
  /** In the order to start them. */
  parts: Runnable[];
  checks: HealthCheck[];
  plugins: EvictionPlugins;
  /** Reports conditions as taints of the CustomNodeResource. */
  reporter: ReporterSource;
  queries: RecordQueries;
  /** How many evicted pods have been deleted since the start. */
  evicted: () => number;
}

/** Builds eviction; called only where it is enabled. */
export function evictionOf(assembly: EvictionAssembly): EvictionParts {
  const { configuration, client, database, containers, clock, registry } = assembly;
  const { nodeName } = configuration();
  const events = namingNode(assembly.events, nodeName);
  const log = assembly.log.child({ component: "eviction" });
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
  const historyStore = new HistoryStore(database);
  const oomEvents = new OomEvents({ events, metrics: roundMetrics, log });
  const history = new PodHistory({
    store: historyStore,
    events: containers?.lifecycle.events,
    settings: () => settings().records,
    memoryUsageOf: (uid) => inTree.lastMemoryUsageOf(uid),
    onOomKill: (kill) => oomEvents.report(kill),
    ...common,
  });
  const pods = new PodWatch({
    client,
    nodeName,
    observer: history,
    metrics: roundMetrics,
    kubeMetrics: assembly.kubeMetrics,
    ...common,
  });
  const tokenCheck = reviewedTokens(client);
  const inTree = inTreeEviction({ ...assembly, pods, runtime: containers?.runtime });
  const plugins = new EvictionPlugins({
    inTree: inTree.sources,
    settings,
    onRoundRequest: (request) => manager.requestRound(request),
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
  const nodeTainter = new NodeTainter({
    client,
    nodeName,
    prefix: policy().taintPrefix,
    events,
    transitionMs: () => policy().conditionTransitionMs,
    onChange: (message) => history.addNodeEvent(message),
    metrics: createTaintMetrics(registry),
    kubeMetrics: assembly.kubeMetrics,
    queueMetrics: assembly.queueMetrics,
    ...common,
  });
  const conditions = new ConditionReporter(storedTaints(records, policy()).customNodeResource);
  const tainter: Tainter = {
    want({ node, customNodeResource }, isComplete) {
      nodeTainter.want(node, isComplete);
      conditions.want(customNodeResource, isComplete);
    },
  };
  const { softEvictionNotifyPath: rootPath } = configuration().eviction;
  const hostPathNotifier = rootPath
    ? new HostPathNotifier({ rootPath, pods, metrics: createHostPathNotifierMetrics(registry), ...common })
    : undefined;
  const manager: EvictionManager = new EvictionManager({
    nodeName,
    pods,
    plugins,
    evictor,
    tainter,
    hostPathNotifier,
    records,
    events,
    onNodeEvent: (message) => history.addNodeEvent(message),
    settings,
    policy,
    refreshReadings: inTree.refreshReadings,
    bootTime: readBootTime,
    metrics: roundMetrics,
    ...common,
  });
  const sampler = new ThresholdSampler({
    host: inTree.host,
    plugins,
    onCrossed: (request) => manager.requestRound(request),
    settings,
    clock,
  });
  return {
    parts: [
      history,
      pods,
      policyFiles,
      nodeTainter,
      ...(hostPathNotifier ? [hostPathNotifier] : []),
      evictor,
      manager,
      sampler,
    ],
    checks: [pods, policyFiles, plugins, manager, evictor, nodeTainter].map((part) => part.healthCheck()),
    plugins,
    reporter: conditions,
    queries: new RecordQueries(records, historyStore, () => manager.state),
    evicted: () => evictor.gone,
  };
}
