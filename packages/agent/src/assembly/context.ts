import { dirname } from "node:path";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import {
  aboutNode,
  createKubeClient,
  createKubeMetrics,
  EventRecorder,
  type KubeApiClient,
  type KubeMetrics,
  loadClusterAccess,
  Watcher,
  type WatchTarget,
} from "@nodekeeper/core/kube";
import {
  type Clock,
  createWorkQueueMetrics,
  type HealthCheck,
  InotifyWatches,
  type Logger,
  LoopTurns,
  metricTable,
  Registry,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { StandbyPlugins } from "../claims/index.ts";
import type { ConfigurationSources } from "../config/index.ts";
import { apiRoute, createBaseMetrics } from "../server/index.ts";
import { createStateMetrics, Marks, SignOfLife, StateDatabase } from "../state/index.ts";
import type { AgentPart } from "./part.ts";

/** The field manager of all writes of the agent, except for the status of ResourceClaims: `statusManager`. */
export const FIELD_MANAGER = "nodekeeper";

export interface ContextOptions {
  configuration: AgentConfiguration;
  /** Where the configuration is loaded and reloaded from. */
  sources: ConfigurationSources;
  version: string;
  clock: Clock;
  log: Logger;
  /** Plugins that registered with the kubelet before the agent could start. Default: none. */
  standby?: StandbyPlugins | undefined;
  /** Registry of metrics. Default: a new one. */
  registry?: Registry;
}

/** Dependencies that the agent's parts share. */
export interface AgentContext {
  /** The current configuration. Some settings can change at runtime. */
  configuration: () => AgentConfiguration;
  setConfiguration: (changed: AgentConfiguration) => void;
  sources: ConfigurationSources;
  version: string;
  standby: StandbyPlugins | undefined;
  clock: Clock;
  /** Wall milliseconds of the agent's start. */
  startedAt: number;
  log: Logger;
  registry: Registry;
  client: KubeApiClient;
  /** The API server's URL, and the source of the credentials. */
  server: { url: string; access: string };
  /** Creates a watcher with the agent's client. The caller runs it. */
  watch: (target: WatchTarget) => Watcher;
  events: EventRecorder;
  /** Records an Event about this Node. */
  notify: (event: { type: "Normal" | "Warning"; reason: string; message: string }) => void;
  database: StateDatabase;
  /** Points in time for the timeline, such as agent starts and evictions. */
  marks: Marks;
  kubeMetrics: KubeMetrics;
  queueMetrics: WorkQueueMetrics;
  /** Starts the watches of directories. */
  watches: InotifyWatches;
  /** Spreads work on large messages of drivers and reporters over turns of the event loop. */
  turns: LoopTurns;
  /** The context's own part: the recorder of Events, and the database's health. */
  part: AgentPart;
  /** Closes the database and the client. */
  close: () => void;
}

/** Builds the context. Throws if the agent can't start: no access to the API server, or no state directory. */
export async function agentContext(options: ContextOptions): Promise<AgentContext> {
  const { clock, log, version, sources } = options;
  let { configuration } = options;
  const { nodeName, kube, stateDir } = configuration;
  const registry = options.registry ?? new Registry();
  createBaseMetrics(registry, version);
  const access = await loadClusterAccess({ ...kube, environment: sources.env });
  const kubeMetrics = createKubeMetrics(registry);
  const kubeLog = log.child({ logger: "kube" });
  const client = createKubeClient({
    access,
    clock,
    log: kubeLog,
    metrics: kubeMetrics,
    version,
    deadlineMs: kube.requestTimeout,
    qps: kube.qps,
    burst: kube.burst,
    fieldManager: FIELD_MANAGER,
  });
  const events = new EventRecorder({
    client,
    clock,
    log: kubeLog,
    metrics: kubeMetrics,
    component: "nodekeeper",
    host: nodeName,
  });
  const regarding = aboutNode(nodeName);
  const { socket } = configuration.api;
  const bootDirectory = socket === "" ? undefined : dirname(socket);
  const database = StateDatabase.open({ directory: stateDir, bootDirectory, clock, log });
  createStateMetrics(registry, database);
  const marks = new Marks(database, clock, log);
  const watches = watchesOf(registry, log);
  const checks: HealthCheck[] = [database.healthCheck(), watches.healthCheck()];
  return {
    configuration: () => configuration,
    setConfiguration: (changed) => {
      configuration = changed;
    },
    sources,
    version,
    standby: options.standby,
    clock,
    startedAt: clock.now(),
    log,
    registry,
    client,
    server: { url: access.server.href, access: access.source },
    watch: (target) => new Watcher({ client, clock, log: kubeLog, metrics: kubeMetrics }, target),
    events,
    notify: (event) => events.record({ ...event, regarding }),
    database,
    marks,
    kubeMetrics,
    queueMetrics: createWorkQueueMetrics(registry),
    watches,
    turns: new LoopTurns(clock),
    part: {
      runnables: [events, new SignOfLife(database, clock)],
      checks,
      routes: [apiRoute("marks", (query) => marks.page(query))],
    },
    close: () => {
      database.close();
      client.close();
    },
  };
}

function watchesOf(registry: Registry, log: Logger): InotifyWatches {
  const watches = new InotifyWatches(log);
  metricTable(registry, "nodekeeper_inotify_").scraped(
    "unwatched_directories",
    "Number of directories that can't be watched because a limit of inotify is reached; they are checked periodically.",
    () => watches.unwatched,
  );
  return watches;
}
