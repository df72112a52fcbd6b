import { evictionPolicyOf, isFullDryRun } from "@nodekeeper/api/decide";
import { readBootTime } from "@nodekeeper/core/lib";
import {
  BlockedEvictions,
  ConditionReporter,
  ContainerKiller,
  createEvictionMetrics,
  DecisionEffects,
  deletionKiller,
  EvictedContainers,
  type EvictionContext,
  EvictionLedger,
  EvictionManager,
  EvictionPlugins,
  EvictionRecords,
  EvictionSender,
  evictionApiKiller,
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
  SignalHistory,
  storedTaints,
  type Tainter,
  ThresholdSampler,
} from "../eviction/index.ts";
import type { ReporterSource } from "../reporting/index.ts";
import { apiRoute, evictionNowRoutes, evictionRoutes } from "../server/index.ts";
import { EvictionStore, HistoryStore, SignalStore } from "../state/index.ts";
import { type AgentContext, FIELD_MANAGER } from "./context.ts";
import { qosAnnotationsOf } from "./eviction-settings.ts";
import { inTreeEviction, type NodeUsage, nodeUsage } from "./in-tree-eviction.ts";
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
  /** Warns of such taints in dry run. */
  leavesTaints: ConditionReporter["left"];
  /** The service account of a pod of the node, by its UID. Undefined if it is not known yet. */
  serviceAccountOf: (uid: string) => string | undefined;
  queries: RecordQueries;
  readings: RecentReadings;
  /** Returns the number of pods evicted since the start: deleted, or their containers stopped. */
  evicted: () => number;
}

/** Builds eviction. Undefined if it is disabled. */
export function evictionPart(
  context: AgentContext,
  lifecycle: LifecyclePart | undefined,
): EvictionPart | undefined {
  const { configuration, database, clock } = context;
  if (!configuration().eviction.enabled) return undefined;
  const shared = evictionContext(context);
  const { nodeName, policy, log } = shared;
  const usage = nodeUsage(configuration, lifecycle?.runtime, clock);
  const records = new EvictionRecords({
    ...shared,
    store: new EvictionStore(database),
    settings: () => configuration().eviction.records,
  });
  const historyStore = new HistoryStore(database);
  const history = historyOf({ context, shared, lifecycle, usage, store: historyStore });
  const pods = new PodWatch({ ...shared, observer: history });
  const signals = new SignalHistory({ ...shared, store: new SignalStore(database) });
  const ledger = new EvictionLedger({ ...shared, records, signals, bootTime: readBootTime });
  const { plugins, policyFiles, pacing, sampler } = pluginsOf({ context, shared, pods, usage });
  const evictor = evictorOf({ shared, lifecycle, pods, ledger });

  const nodeCondition = new NodeCondition(shared);
  const blocked = new BlockedEvictions(nodeCondition);
  const nodeTainter = nodeTainterOf(shared, history, nodeCondition);
  const isDryRun = () => isFullDryRun(policy());
  const conditions = new ConditionReporter(
    storedTaints(records, policy()).customNodeResource,
    isDryRun(),
    shared,
  );
  const { softEvictionNotifyPath: rootPath } = configuration().eviction;
  const hostPathNotifiers = rootPath ? [new HostPathNotifier({ ...shared, rootPath, pods, isDryRun })] : [];
  const effects = new DecisionEffects({
    tainter: tainterOf(nodeTainter, conditions),
    blocked,
    notifiers: [new Notifier(shared.events, clock), ...hostPathNotifiers],
    history,
    clock,
    log,
  });
  const manager = new EvictionManager({
    context: shared,
    ...{ pods, plugins, evictor, ledger, effects, pacing, host: usage },
  });
  const queries = new RecordQueries(records, historyStore, {
    nodeName,
    state: () => manager.state,
    policy,
    taints: () => nodeTainter.taints,
  });
  const now = new NowQueries({ nodeName, manager, pods, history: historyStore, policy, clock });
  const acting = [nodeTainter, nodeCondition, ...hostPathNotifiers, evictor];
  return {
    runnables: [history, pods, policyFiles, ...acting, manager, sampler],
    checks: [pods, policyFiles, plugins, manager, blocked, evictor, nodeTainter].map((part) =>
      part.healthCheck(),
    ),
    plugins,
    reporter: conditions,
    isFrozenTaint: ({ key, qosLevel }) =>
      conditions.leavesTaints && qosLevel !== undefined && String(key).startsWith(`${policy().taintPrefix}/`),
    leavesTaints: (taints) => {
      if (isDryRun()) conditions.left(taints);
    },
    serviceAccountOf: (uid) => pods.serviceAccountOf(uid),
    queries,
    readings: manager.readings,
    routes: [
      ...evictionRoutes(queries, manager.readings),
      ...evictionNowRoutes(now),
      apiRoute("eviction/signals", (query) => signals.page(query)),
    ],
    evicted: () => evictor.evicted,
  };
}

function evictionContext({
  configuration,
  events: agentEvents,
  registry,
  ...agent
}: AgentContext): EvictionContext {
  const policy = () => evictionPolicyOf(configuration());
  const { nodeName } = configuration();
  const podEvents = namingNode(agentEvents, nodeName);
  return {
    ...agent,
    nodeName,
    settings: () => configuration().eviction,
    policy,
    // Not sent in dry run.
    events: {
      record(event) {
        if (!isFullDryRun(policy())) podEvents.record(event);
      },
    },
    qosLevelOf: qosLevelReader(qosAnnotationsOf(configuration())),
    log: agent.log.child({ logger: "eviction" }),
    metrics: createEvictionMetrics(registry),
  };
}

/** Dependencies of the functions that build the parts of eviction. */
interface PartsOfEviction {
  context: AgentContext;
  shared: EvictionContext;
  lifecycle: LifecyclePart | undefined;
  pods: NodePods;
  usage: NodeUsage;
  ledger: EvictionLedger;
  store: HistoryStore;
}

function historyOf({
  context,
  shared,
  lifecycle,
  usage,
  store,
}: Pick<PartsOfEviction, "context" | "shared" | "lifecycle" | "usage" | "store">): PodHistory {
  // OOM kills are reported even in dry run.
  const oomEvents = new OomEvents({ ...shared, events: namingNode(context.events, shared.nodeName) });
  return new PodHistory({
    ...shared,
    store,
    events: lifecycle?.generator.events,
    settings: () => shared.settings().records,
    memoryUsageOf: (uid) => usage.memories.lastOf(uid)?.usageBytes,
    onOomKill: (kill) => oomEvents.report(kill),
  });
}

function pluginsOf({
  context,
  shared,
  pods,
  usage,
}: Pick<PartsOfEviction, "context" | "shared" | "pods" | "usage">) {
  const { settings, clock } = shared;
  const pacing = new RoundPacing(clock, () => settings().outOfTurnRounds);
  const tokenCheck = reviewedTokens(shared.client);
  const inTree = inTreeEviction({ ...context, pods, usage });
  const plugins = new EvictionPlugins({
    ...shared,
    inTree: inTree.sources,
    pacing,
    tokenCheck: () => (settings().strict ? tokenCheck : undefined),
  });
  const policyFiles = new PolicyFiles({
    ...shared,
    files: () => settings().policies.files,
    enabled: () => settings().policies.enabled,
    plugins,
    sourceOf: inTree.ofPolicy,
  });
  const sampler = new ThresholdSampler({ host: usage.host, plugins, pacing, settings, clock });
  return { plugins, policyFiles, pacing, sampler };
}

function evictorOf({
  shared,
  lifecycle,
  pods,
  ledger,
}: Pick<PartsOfEviction, "shared" | "lifecycle" | "pods" | "ledger">): PodEvictor {
  const { client } = shared;
  const killers: Killer[] = [evictionApiKiller(client), deletionKiller(client)];
  if (lifecycle) {
    const { runtime, generator } = lifecycle;
    killers.push(new ContainerKiller({ ...shared, runtime, statuses: generator.statuses }));
  }
  const sender = new EvictionSender({ ...shared, killers });
  const containers =
    lifecycle &&
    new EvictedContainers({
      ...shared,
      events: lifecycle.generator.events,
      statuses: lifecycle.generator.statuses,
      ledger,
    });
  return new PodEvictor({ context: shared, sender, pods, containers, ledger });
}

function nodeTainterOf(shared: EvictionContext, history: PodHistory, condition: NodeCondition): NodeTainter {
  return new NodeTainter({
    context: shared,
    onNode: (node) => condition.seen(node),
    fieldManager: FIELD_MANAGER,
    onChange: (title, kind) => {
      history.addNodeEvent(title);
      shared.marks.add([{ kind, title }]);
    },
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
