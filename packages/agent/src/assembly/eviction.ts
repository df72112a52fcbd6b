import { evictionPolicyOf, isFullDryRun } from "@nodekeeper/api/decide";
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
  DecisionEffects,
  DeletionKiller,
  EvictedContainers,
  EvictionApiKiller,
  type EvictionContext,
  EvictionLedger,
  EvictionManager,
  EvictionPlugins,
  EvictionRecords,
  EvictionSender,
  HostPathNotifier,
  type Killer,
  NodeCondition,
  type NodePods,
  NodeTainter,
  Notifier,
  NowQueries,
  namingNode,
  OomEvents,
  PodEvictor,
  PodHistory,
  PodWatch,
  qosLevelReader,
  type RecentReadings,
  RecordQueries,
  RoundPacing,
  reviewedTokens,
  storedTaints,
  type Tainter,
  ThresholdSampler,
} from "../eviction/index.ts";
import type { ReporterSource } from "../reporting/index.ts";
import { evictionNowRoutes, evictionRoutes } from "../server/index.ts";
import { EvictionStore, HistoryStore } from "../state/index.ts";
import { type AgentContext, FIELD_MANAGER } from "./context.ts";
import { killerTableOf, qosAnnotationsOf } from "./eviction-settings.ts";
import { inTreeEviction, nodeUsage } from "./in-tree-eviction.ts";
import type { LifecyclePart } from "./lifecycle.ts";
import type { AgentPart } from "./part.ts";
import { PolicyFiles } from "./policy-files.ts";

/** Eviction and its records. */
export interface EvictionPart extends AgentPart {
  plugins: EvictionPlugins;
  /** Reports conditions as taints of the CustomNodeResource. */
  reporter: ReporterSource;
  /**
   * Returns whether a taint of the agent on the CustomNodeResource is left unchanged, because it may belong to
   * eviction.
   */
  isFrozenTaint: (taint: { key?: unknown; qosLevel?: unknown }) => boolean;
  queries: RecordQueries;
  readings: RecentReadings;
  /** Number of evicted pods that were deleted since the start. */
  evicted: () => number;
}

/** Builds eviction. Undefined if it is disabled. */
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
  // Events about evictions and their taints. Not sent in dry run.
  const events: typeof podEvents = {
    record(event) {
      if (!isDryRun()) podEvents.record(event);
    },
  };
  const settings = () => configuration().eviction;
  const metrics = createEvictionRoundMetrics(registry);
  const common = { clock, log };
  const shared: EvictionContext = { nodeName, settings, policy, marks, metrics, ...common };
  const qosLevelOf = qosLevelReader(qosAnnotationsOf(configuration()));

  const usage = nodeUsage(configuration, lifecycle?.runtime, clock);
  const recordBounds = () => settings().records;
  const records = new EvictionRecords({
    store: new EvictionStore(database),
    settings: recordBounds,
    ...common,
  });
  const ledger = new EvictionLedger({ records, bootTime: readBootTime, metrics, ...common });
  const historyStore = new HistoryStore(database);
  const oomEvents = new OomEvents({ events: podEvents, metrics, log });
  const history = new PodHistory({
    store: historyStore,
    events: lifecycle?.generator.events,
    settings: recordBounds,
    memoryUsageOf: (uid) => usage.memories.lastOf(uid)?.usageBytes,
    onOomKill: (kill) => oomEvents.report(kill),
    ...common,
  });
  const pods = new PodWatch({
    client,
    nodeName,
    qosLevelOf,
    observer: history,
    metrics,
    kubeMetrics,
    ...common,
  });

  const pacing = new RoundPacing(clock, () => settings().outOfTurnRounds);
  const tokenCheck = reviewedTokens(client);
  const inTree = inTreeEviction({ ...context, pods, usage });
  const plugins = new EvictionPlugins({
    transitionMs: () => policy().conditionTransitionPeriodMs,
    inTree: inTree.sources,
    settings,
    pacing,
    tokenCheck: () => (configuration().eviction.strict ? tokenCheck : undefined),
    metrics,
    ...common,
  });
  const policyFiles = new PolicyFiles({
    files: () => configuration().eviction.policies.files,
    enabled: () => configuration().eviction.policies.enabled,
    plugins,
    sourcesOf: inTree.ofPolicies,
    ...common,
  });
  const sampler = new ThresholdSampler({ host: usage.host, plugins, pacing, settings, clock });

  const evictor = evictorOf({ context, shared, lifecycle, pods, ledger, events, qosLevelOf });
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
  const { softEvictionNotifyPath: rootPath } = configuration().eviction;
  const hostPathNotifiers = rootPath
    ? [
        new HostPathNotifier({
          rootPath,
          pods,
          isDryRun,
          metrics: createHostPathNotifierMetrics(registry),
          ...common,
        }),
      ]
    : [];
  const effects = new DecisionEffects({
    tainter: tainterOf(nodeTainter, conditions),
    blocked,
    notifiers: [new Notifier(events, clock), ...hostPathNotifiers],
    history,
    ...common,
  });
  const manager = new EvictionManager({
    context: shared,
    pods,
    plugins,
    evictor,
    ledger,
    effects,
    pacing,
    host: usage,
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
      ...hostPathNotifiers,
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

interface EvictorParts {
  context: AgentContext;
  shared: EvictionContext;
  lifecycle: LifecyclePart | undefined;
  pods: NodePods;
  ledger: EvictionLedger;
  events: Pick<AgentContext["events"], "record">;
  qosLevelOf: ReturnType<typeof qosLevelReader>;
}

function evictorOf({
  context,
  shared,
  lifecycle,
  pods,
  ledger,
  events,
  qosLevelOf,
}: EvictorParts): PodEvictor {
  const { client, configuration, registry, queueMetrics } = context;
  const { nodeName, policy, marks, clock, log } = shared;
  const metrics = createEvictorMetrics(registry);
  const marginMs = () => policy().releaseMarginMs;
  const killers: Killer[] = [new EvictionApiKiller(client), new DeletionKiller(client)];
  if (lifecycle) {
    const { runtime, generator } = lifecycle;
    killers.push(new ContainerKiller({ runtime, statuses: generator.statuses, clock, marginMs }));
  }
  const sender = new EvictionSender({
    client,
    nodeName,
    killers,
    killerTable: () => killerTableOf(configuration()),
    skip: () => policy().skip,
    qosLevelOf,
    clock,
    metrics,
  });
  const containers =
    lifecycle &&
    new EvictedContainers({
      events: lifecycle.generator.events,
      statuses: lifecycle.generator.statuses,
      ledger,
      marginMs,
      clock,
      log,
    });
  return new PodEvictor({
    ...{ sender, pods, containers, ledger, policy, events, marks },
    ...{ metrics, queueMetrics, clock, log },
  });
}

// Applies conditions as taints of the Node and, through a reporter, of the CustomNodeResource.
function tainterOf(node: NodeTainter, reporter: ConditionReporter): Tainter {
  return {
    setDesired(taints, isComplete) {
      node.setDesired(taints.node, isComplete);
      reporter.setDesired(taints.customNodeResource, isComplete);
    },
    suspend() {
      node.suspend();
      reporter.suspend();
    },
  };
}
