import {
  createKubeClient,
  createKubeMetrics,
  EventRecorder,
  type KubeApiClient,
  type KubeMetrics,
  loadClusterAccess,
  Watcher,
  type WatcherOptions,
} from "@nodekeeper/core/kube";
import {
  type Clock,
  createWorkQueueMetrics,
  type HealthCheck,
  type Logger,
  LoopTurns,
  Registry,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { AgentConfiguration, ConfigurationSources } from "../config/index.ts";
import { apiRoute, createBaseMetrics } from "../server/index.ts";
import { createStateMetrics, Marks, SignOfLife, StateDatabase } from "../state/index.ts";
import type { AgentPart } from "./part.ts";

/** The field manager of everything that the agent writes. */
export const FIELD_MANAGER = "nodekeeper";

export interface ContextOptions {
  configuration: AgentConfiguration;
  /** What the configuration was loaded from, and is loaded from again. */
  sources: ConfigurationSources;
  version: string;
  clock: Clock;
  log: Logger;
  /** Where metrics are registered. Default: a new one. */
  registry?: Registry;
}

/** What all parts of the agent are built from. */
export interface AgentContext {
  /** The current one: some settings change live. */
  configuration: () => AgentConfiguration;
  setConfiguration: (changed: AgentConfiguration) => void;
  sources: ConfigurationSources;
  version: string;
  clock: Clock;
  /** Wall milliseconds of the agent's start. */
  startedAt: number;
  log: Logger;
  registry: Registry;
  client: KubeApiClient;
  /** The API server's URL, and where the access to it comes from. */
  server: { url: string; access: string };
  /** Makes a watcher with the agent's client; it runs where its owner runs it. */
  watch: (
    options: Pick<WatcherOptions, "resource" | "fieldSelector" | "labelSelector" | "handler">,
  ) => Watcher;
  events: EventRecorder;
  /** Records an Event about this Node. */
  notify: (event: { type: "Normal" | "Warning"; reason: string; message: string }) => void;
  database: StateDatabase;
  /** What happened on the node at points of time. */
  marks: Marks;
  kubeMetrics: KubeMetrics;
  queueMetrics: WorkQueueMetrics;
  /** Turns of the event loop that work on large messages of drivers and reporters shares. */
  turns: LoopTurns;
  /** The context's own part: the recorder of Events, and the database's health. */
  part: AgentPart;
  /** Closes the database and the client. */
  close: () => void;
}

/** Throws where the agent can't start: no access to the API server, no state directory. */
export async function agentContext(options: ContextOptions): Promise<AgentContext> {
  const { clock, log, version, sources } = options;
  let { configuration } = options;
  const { nodeName, kube, stateDir } = configuration;
  const registry = options.registry ?? new Registry();
  createBaseMetrics(registry, version);
  const access = await loadClusterAccess({
    ...(kube.kubeconfig ? { kubeconfig: kube.kubeconfig } : {}),
    ...(kube.context ? { context: kube.context } : {}),
    environment: sources.env,
  });
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
  // The kubelet, too, names its Node by name where a uid belongs, so that kubectl describe finds the Event.
  const regarding = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
  const database = StateDatabase.open({ directory: stateDir, clock, log });
  createStateMetrics(registry, database);
  const marks = new Marks(database, clock, log);
  const checks: HealthCheck[] = [database.healthCheck()];
  return {
    configuration: () => configuration,
    setConfiguration: (changed) => {
      configuration = changed;
    },
    sources,
    version,
    clock,
    startedAt: clock.now(),
    log,
    registry,
    client,
    server: { url: access.server.href, access: access.source },
    watch: (watched) => new Watcher({ client, clock, log: kubeLog, metrics: kubeMetrics, ...watched }),
    events,
    notify: (event) => events.record({ ...event, regarding }),
    database,
    marks,
    kubeMetrics,
    queueMetrics: createWorkQueueMetrics(registry),
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
