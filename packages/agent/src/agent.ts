import { limitInformationalAnswers } from "@nodekeeper/core/grpc";
import {
  createKubeClient,
  createKubeMetrics,
  EventRecorder,
  loadClusterAccess,
  Watcher,
} from "@nodekeeper/core/kube";
import {
  type Clock,
  createWorkQueueMetrics,
  type HealthCheck,
  type Logger,
  type LogLevel,
  Registry,
  type Runnable,
  runInOrder,
} from "@nodekeeper/core/lib";
import {
  claimsOf,
  containerRuntime,
  deviceSettings,
  driverHandler,
  type EvictionParts,
  evictionOf,
  inTreeReporters,
  localApiOf,
  podLifecycle,
  remoteAccessOf,
} from "./assembly/index.ts";
import {
  type AgentConfiguration,
  type ConfigurationSources,
  ConfigurationWatcher,
  createConfigMetrics,
} from "./config/index.ts";
import { DeviceSync } from "./devices/index.ts";
import type { PodLifecycleEventGenerator } from "./lifecycle/index.ts";
import { PluginManager } from "./plugins/index.ts";
import { createReportingMetrics, kindPolicies, Publisher, ReporterManager } from "./reporting/index.ts";
import {
  createBaseMetrics,
  createStatusServer,
  evictionRoutes,
  type JsonRoute,
  listPlugins,
} from "./server/index.ts";
import { createStateMetrics, ReporterStore, StateDatabase } from "./state/index.ts";

// Less than the five seconds that a person who pressed Ctrl-C waits.
const STOP_DEADLINE_MS = 4_000;
const FIELD_MANAGER = "nodekeeper";
// Running plugins are found by the first scan, and asked at once.
const RETURN_MS = 10_000;

export interface AgentOptions {
  configuration: AgentConfiguration;
  /** What the configuration was loaded from, and is loaded from again. */
  sources: ConfigurationSources;
  version: string;
  clock: Clock;
  log: Logger;
  /** Changes the level of `log`. */
  setLogLevel: (level: LogLevel) => void;
  /** Calls back at each SIGHUP; returns the function that stops that. */
  onHangup: (callback: () => void) => () => void;
}

export interface AgentSummary {
  /** Reporter plugins that are connected. */
  plugins: number;
  objects: number;
  /** Pods of the container runtime; undefined where lifecycle is off. */
  pods: number | undefined;
  /** Lifecycle events emitted so far. */
  events: number | undefined;
  /** Pods that were evicted and deleted; undefined where eviction is off. */
  evicted: number | undefined;
  /** Objects with changes that are not written yet. */
  pending: number;
  /** Writes that the API server accepted since the start. */
  writes: number;
  /** Wall milliseconds. */
  lastWriteAt: number | undefined;
  /** Why something can't be published. */
  problem: string | undefined;
}

/** The running agent. */
export interface Agent extends Runnable {
  /** Resolves with the address of the status server once it listens. */
  listening(): Promise<string>;
  /** The agent's current figures, for a live line. */
  summary(): AgentSummary;
}

/**
 * Builds every part from the configuration. The only module that imports all others.
 * Throws where the agent can't start: no access to the API server, no state directory, an unknown in-tree plugin.
 */
export async function createAgent(options: AgentOptions): Promise<Agent> {
  const { clock, log, version, sources } = options;
  let { configuration } = options;
  const { nodeName, kube, plugins, reporting, server } = configuration;
  const registry = new Registry();
  createBaseMetrics(registry, version);

  const access = await loadClusterAccess({
    ...(kube.kubeconfig ? { kubeconfig: kube.kubeconfig } : {}),
    ...(kube.context ? { context: kube.context } : {}),
    environment: sources.env,
  });
  const kubeMetrics = createKubeMetrics(registry);
  const client = createKubeClient({
    access,
    clock,
    log: log.child({ component: "kube" }),
    metrics: kubeMetrics,
    version,
    deadlineMs: kube.requestTimeout,
    qps: kube.qps,
    burst: kube.burst,
    fieldManager: FIELD_MANAGER,
  });

  const watching = { client, clock, log: log.child({ component: "kube" }), metrics: kubeMetrics };
  const queueMetrics = createWorkQueueMetrics(registry);

  const events = new EventRecorder({
    client,
    clock,
    log: log.child({ component: "kube" }),
    metrics: kubeMetrics,
    component: "nodekeeper",
    host: nodeName,
  });
  // The kubelet, too, names its Node by name where a uid belongs, so that kubectl describe finds the Event.
  const regarding = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
  const notify = (reason: string, message: string) =>
    events.record({ type: "Warning", reason, message, regarding });

  const database = StateDatabase.open({ directory: configuration.stateDir, clock, log });
  createStateMetrics(registry, database);
  const runtime = configuration.lifecycle.enabled
    ? containerRuntime(configuration, clock, log, registry)
    : undefined;
  const lifecycle = runtime && podLifecycle(configuration, runtime, database, clock, log, registry);
  const eviction = configuration.eviction.enabled
    ? evictionOf({
        configuration: () => configuration,
        client,
        database,
        events,
        containers: runtime && lifecycle && { runtime, lifecycle },
        clock,
        log,
        registry,
        kubeMetrics,
        queueMetrics,
      })
    : undefined;
  const claims = claimsOf({
    configuration: () => configuration,
    database,
    client,
    onTaints: (driver) => devices.taintsChanged(driver),
    clock,
    log: log.child({ component: "claims" }),
    registry,
    queueMetrics,
  });
  const devices: DeviceSync = new DeviceSync({
    client,
    watch: (resource, selectors, handler) => new Watcher({ ...watching, ...selectors, resource, handler }),
    nodeName,
    settings: () => deviceSettings(configuration),
    notify: ({ type, reason, message }) => events.record({ type, reason, message, regarding }),
    taints: (driver) => claims?.taints(driver),
    clock,
    log: log.child({ component: "devices" }),
    registry,
    queueMetrics,
  });
  const store = new ReporterStore(database);
  const policies = kindPolicies(reporting.additionalKinds);
  const reportingLog = log.child({ component: "reporting" });
  const metrics = createReportingMetrics(registry);
  const reporters: ReporterManager = new ReporterManager({
    store,
    policies,
    inTree: [
      ...inTreeReporters(configuration, lifecycle, devices, clock, log, registry),
      ...(eviction ? [eviction.reporter] : []),
    ],
    settings: () => configuration.reporting,
    maxLost: plugins.maxPlugins,
    returnMs: RETURN_MS,
    maxContentBytes: reporting.maxContentSize,
    onChange: (objects) => publisher.touch(objects),
    notify,
    clock,
    log: reportingLog,
    metrics,
  });
  const publisher = new Publisher({
    client,
    fieldManager: FIELD_MANAGER,
    watch: (resource, name, handler) =>
      new Watcher({ ...watching, resource, fieldSelector: `metadata.name=${name}`, handler }),
    store,
    nodeName,
    policies,
    contents: () => reporters.contents(),
    returnMs: RETURN_MS,
    beforeWrite: () => reporters.flush(),
    notify,
    // Otherwise an agent that lost its state would leave eviction's taints behind.
    managedTaintPrefixes: [
      ...reporting.managedTaintPrefixes,
      ...(eviction ? [`${configuration.eviction.taintPrefix}/`] : []),
    ],
    settings: () => configuration.reporting,
    clock,
    log: reportingLog,
    metrics,
    queueMetrics,
  });
  const localApi = localApiOf(configuration, lifecycle, clock, log, registry);
  const pluginManager = new PluginManager({
    directories: plugins.directories,
    endpointDirectories: plugins.endpointDirectories,
    allowedUids: plugins.allowedUids.map(Number),
    foreignSockets: [configuration.api.socket, configuration.runtime.endpoint.replace("unix://", "")].filter(
      (path) => path !== "",
    ),
    handlers: [reporters, driverHandler(devices.handler, claims), ...(eviction ? [eviction.plugins] : [])],
    clock,
    log: log.child({ component: "plugins" }),
    registry,
    reservedNames: (type) => (type === reporters.type ? reporters.inTreeNames : new Set()),
    rescanIntervalMs: plugins.rescanInterval,
    livenessIntervalMs: plugins.livenessInterval,
    // A socket that accepts and sends nothing is not distinguished from one that does not answer GetInfo.
    dialTimeoutMs: plugins.infoTimeout,
    infoTimeoutMs: plugins.infoTimeout,
    noticeTimeoutMs: plugins.notifyTimeout,
    maxPlugins: plugins.maxPlugins,
  });
  const configurationWatcher = new ConfigurationWatcher({
    sources,
    initial: configuration,
    clock,
    log: log.child({ component: "config" }),
    subscribe: options.onHangup,
    onChange: (changed) => {
      configuration = changed;
      options.setLogLevel(changed.log.level);
      reporters.settingsChanged();
    },
    metrics: createConfigMetrics(registry),
  });
  const checks: HealthCheck[] = [
    database.healthCheck(),
    { name: "ReporterFetcherReady", kind: "ready", check: () => reporters.fetcherHealth() },
    { name: "ReporterPublished", kind: "ready", check: () => publisher.health() },
    pluginManager.healthCheck(),
    ...devices.healthChecks(),
    ...(claims ? [claims.healthCheck()] : []),
    ...(eviction?.checks ?? []),
    ...(lifecycle ? [lifecycle.healthCheck()] : []),
    ...(localApi ? [localApi.healthCheck()] : []),
  ];
  const routes: JsonRoute[] = [
    {
      path: "plugins",
      summary: "Plugins: how they stand with the agent, and what they report.",
      handle: () =>
        listPlugins(pluginManager.list(), reporters.status(), publisher.status(), eviction?.plugins.status()),
    },
    { path: "devices", summary: "Drivers, their devices and slices.", handle: () => devices.status() },
    {
      path: "claims",
      summary: "ResourceClaims by driver, and how the agent stands with the kubelet for each.",
      handle: () => claims?.status() ?? [],
    },
    ...(eviction ? evictionRoutes(eviction.queries) : []),
    { path: "objects", summary: "What is published to the API server.", handle: () => publisher.status() },
    { path: "configuration", summary: "The configuration the agent runs with.", handle: () => configuration },
    {
      path: "version",
      summary: "The agent's version and node.",
      handle: () => ({ version, nodeName, node: process.version }),
    },
  ];
  const remote = remoteAccessOf(configuration, client, clock, log);
  const statusServer = createStatusServer({
    address: server.address,
    ...(remote ? { remote } : {}),
    checks,
    registry,
    routes,
    clock,
    log: log.child({ component: "server" }),
  });

  return {
    name: "agent",
    listening: () => statusServer.whenListening(),
    summary: () => summarize(reporters, publisher, lifecycle, eviction),
    async run(signal) {
      using _informationalAnswers = limitInformationalAnswers();
      log.info({ version, nodeName, server: access.server.href, access: access.source }, "agent starts");
      try {
        reporters.restore();
        lifecycle?.restore();
        const parts: Runnable[] = [
          statusServer,
          events,
          publisher,
          reporters,
          devices,
          ...(claims ? [claims] : []),
          ...(lifecycle ? [lifecycle] : []),
          ...(localApi ? [localApi] : []),
          ...(eviction?.parts ?? []),
          pluginManager,
          configurationWatcher,
        ];
        await runInOrder(parts, { clock, log, stopDeadlineMs: STOP_DEADLINE_MS }, signal);
      } finally {
        runtime?.[Symbol.dispose]();
        database.close();
        client.close();
        log.info({}, "agent stopped");
      }
    },
  };
}

function summarize(
  reporters: ReporterManager,
  publisher: Publisher,
  lifecycle: PodLifecycleEventGenerator | undefined,
  eviction: EvictionParts | undefined,
): AgentSummary {
  const objects = publisher.status();
  const writes = objects.flatMap(({ lastWriteAt }) => lastWriteAt ?? []);
  return {
    plugins: reporters.status().filter(({ state }) => state === "running").length,
    objects: objects.length,
    pods: lifecycle?.statuses.uids().length,
    events: lifecycle?.events.last,
    evicted: eviction?.evicted(),
    pending: objects.filter(({ pending }) => pending).length,
    writes: objects.reduce((sum, { writes }) => sum + writes, 0),
    lastWriteAt: writes.length > 0 ? Math.max(...writes) : undefined,
    problem: objects.find(({ lastError }) => lastError)?.lastError,
  };
}
