import { readBootTime } from "@nodekeeper/core/lib";
import {
  addedTaints,
  BlockedEvictions,
  ConditionReporter,
  ContainerKiller,
  createEvictionRoundMetrics,
  createEvictorMetrics,
  createHostPathNotifierMetrics,
  createTaintMetrics,
  DeletionKiller,
  EvictedContainers,
  EvictionApiKiller,
  EvictionManager,
  EvictionPlugins,
  EvictionRecords,
  EvictionSender,
  HostPathNotifier,
  isFullDryRun,
  type Killer,
  markOf,
  NodeCondition,
  NodeTainter,
  NowQueries,
  namingNode,
  OomEvents,
  PodEvictor,
  PodHistory,
  PodWatch,
  qosLevelReader,
  type RecentReadings,
  RecordQueries,
  reviewedTokens,
  storedTaints,
  type Tainter,
  ThresholdSampler,
} from "../eviction/index.ts";
import type { ReporterSource } from "../reporting/index.ts";
import { evictionNowRoutes, evictionRoutes } from "../server/index.ts";
import { EvictionStore, HistoryStore } from "../state/index.ts";
import { type AgentContext, FIELD_MANAGER } from "./context.ts";
import { evictionPolicyOf } from "./eviction-policy-settings.ts";
import { evictionSettingsOf, killerTableOf, qosAnnotationsOf } from "./eviction-settings.ts";
import { inTreeEviction } from "./in-tree-eviction.ts";
import type { LifecyclePart } from "./lifecycle.ts";
import type { AgentPart } from "./part.ts";
import { PolicyFiles } from "./policy-files.ts";

/** Eviction and its records. */
export interface EvictionPart extends AgentPart {
  plugins: EvictionPlugins;
  /** Reports conditions as taints of the CustomNodeResource. */
  reporter: ReporterSource;
  /** Whether a taint of the agent on the CustomNodeResource stays as it is, because it may be eviction's. */
  isFrozenTaint: (taint: { key?: unknown; qosLevel?: unknown }) => boolean;
  queries: RecordQueries;
  readings: RecentReadings;
  /** How many evicted pods have been deleted since the start. */
  evicted: () => number;
}

/** Builds eviction; undefined where it is off. */
export function evictionPart(
  context: AgentContext,
  lifecycle: LifecyclePart | undefined,
): EvictionPart | undefined {
  const { configuration, client, database, clock, registry, kubeMetrics, queueMetrics, marks } = context;
  if (!configuration().eviction.enabled) return undefined;
  const { nodeName } = configuration();
  const log = context.log.child({ logger: "eviction" });
  const policy = () => evictionPolicyOf(configuration());
  const isDryRun = () => isFullDryRun(policy());
  const podEvents = namingNode(context.events, nodeName);
  // Events about evictions and their taints.
  const events: typeof podEvents = {
    record(event) {
      if (!isDryRun()) podEvents.record(event);
    },
  };
  const settings = () => evictionSettingsOf(configuration());
  const roundMetrics = createEvictionRoundMetrics(registry);
  const metrics = createEvictorMetrics(registry);
  const common = { clock, log };
  const qosLevelOf = qosLevelReader(qosAnnotationsOf(configuration()));

  const records = new EvictionRecords({
    store: new EvictionStore(database),
    settings: () => settings().records,
    ...common,
  });
  const historyStore = new HistoryStore(database);
  const oomEvents = new OomEvents({ events: podEvents, metrics: roundMetrics, log });
  const history = new PodHistory({
    store: historyStore,
    events: lifecycle?.generator.events,
    settings: () => settings().records,
    memoryUsageOf: (uid) => inTree.lastMemoryUsageOf(uid),
    onOomKill: (kill) => oomEvents.report(kill),
    ...common,
  });
  const pods = new PodWatch({
    client,
    nodeName,
    qosLevelOf,
    observer: history,
    metrics: roundMetrics,
    kubeMetrics,
    ...common,
  });
  const tokenCheck = reviewedTokens(client);
  const inTree = inTreeEviction({ ...context, pods, runtime: lifecycle?.runtime });
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
  if (lifecycle) {
    const { runtime, generator } = lifecycle;
    killers.push(new ContainerKiller({ runtime, statuses: generator.statuses, clock, marginMs }));
  }
  const evictor = new PodEvictor({
    sender: new EvictionSender({
      client,
      nodeName,
      killers,
      killerTable: () => killerTableOf(configuration()),
      skip: () => policy().skip,
      qosLevelOf,
      clock,
      metrics,
    }),
    pods,
    containers:
      lifecycle &&
      new EvictedContainers({
        events: lifecycle.generator.events,
        statuses: lifecycle.generator.statuses,
        marginMs,
        ...common,
      }),
    policy,
    events,
    onEnded: (pod, plugin, text) => marks.add([markOf({ kind: "evictionEnded", pod, plugin, text })]),
    metrics,
    queueMetrics,
    ...common,
  });
  const nodeCondition = new NodeCondition({ client, nodeName, events, queueMetrics, ...common });
  const blocked = new BlockedEvictions(nodeCondition);
  const nodeTainter = new NodeTainter({
    client,
    nodeName,
    onNode: (node) => nodeCondition.seen(node),
    fieldManager: FIELD_MANAGER,
    addedTaints: () => addedTaints(history.nodeEvents()),
    events,
    transitionMs: () => policy().conditionTransitionPeriodMs,
    onChange: (title, kind) => {
      history.addNodeEvent(title);
      marks.add([{ kind, title }]);
    },
    metrics: createTaintMetrics(registry),
    kubeMetrics,
    queueMetrics,
    ...common,
  });
  const conditions = new ConditionReporter(storedTaints(records, policy()).customNodeResource, isDryRun());
  const tainter: Tainter = {
    setDesired({ node, customNodeResource }, isComplete) {
      nodeTainter.setDesired(node, isComplete);
      conditions.setDesired(customNodeResource, isComplete);
    },
    suspend() {
      nodeTainter.suspend();
      conditions.suspend();
    },
  };
  const { softEvictionNotifyPath: rootPath } = configuration().eviction;
  const hostPathNotifier = rootPath
    ? new HostPathNotifier({
        rootPath,
        pods,
        isDryRun,
        metrics: createHostPathNotifierMetrics(registry),
        ...common,
      })
    : undefined;
  const manager: EvictionManager = new EvictionManager({
    nodeName,
    pods,
    plugins,
    evictor,
    tainter,
    blocked,
    hostPathNotifier,
    records,
    events,
    onNodeEvent: (message, plugin) => history.addNodeEvent(message, plugin),
    onMarks: (made) => marks.add(made),
    settings,
    policy,
    onRoundStart: inTree.onRoundStart,
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
  const queries = new RecordQueries(records, historyStore, {
    nodeName,
    state: () => manager.state,
    policy,
    taints: () => nodeTainter.taints,
  });
  const now = new NowQueries({ nodeName, manager, pods, history: historyStore, policy, clock });
  return {
    runnables: [
      history,
      pods,
      policyFiles,
      nodeTainter,
      nodeCondition,
      ...(hostPathNotifier ? [hostPathNotifier] : []),
      evictor,
      manager,
      sampler,
    ],
    checks: [pods, policyFiles, plugins, manager, blocked, evictor, nodeTainter].map((part) =>
      part.healthCheck(),
    ),
    plugins,
    reporter: conditions,
    isFrozenTaint: ({ key, qosLevel }) =>
      conditions.leavesTaints && qosLevel !== undefined && String(key).startsWith(`${policy().taintPrefix}/`),
    queries,
    readings: manager.readings,
    routes: [...evictionRoutes(queries, manager.readings), ...evictionNowRoutes(now)],
    evicted: () => evictor.evicted,
  };
}
