import type { ApiResource, KubeClient, WatchHandler } from "@nodekeeper/core/kube";
import {
  type Clock,
  type HealthCheck,
  type Logger,
  NodekeeperError,
  type Runnable,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { ReporterStore } from "../state/index.ts";
import type { PluginContent } from "./content.ts";
import type { KindPolicy } from "./kinds.ts";
import type { ReportingMetrics } from "./metrics.ts";

/** Tells of something that happened to this node, as an Event: a reason in UpperCamelCase and a message. */
export type Notify = (reason: string, message: string) => void;

/** A watch of one object, and whether it works. */
export interface ObjectWatch extends Runnable {
  healthCheck(): HealthCheck;
}

export interface PublisherOptions {
  client: KubeClient;
  /** The name under which the client applies. */
  fieldManager: string;
  /** Makes a watch of one object by name; the publisher runs it. */
  watch: (resource: ApiResource, name: string, handler: WatchHandler) => ObjectWatch;
  store: ReporterStore;
  /** Also the name of the CNR and of any other object that is published. */
  nodeName: string;
  policies: ReadonlyMap<string, KindPolicy>;
  contents: () => ReadonlyMap<string, PluginContent>;
  /** How long plugins that run may take to be found and asked after the start, milliseconds. */
  returnMs: number;
  /** Called before each write; makes durable what it publishes. */
  beforeWrite: () => void;
  /** Tells people who look at the node with kubectl. */
  notify: Notify;
  managedTaintPrefixes: readonly string[];
  /** Milliseconds; read anew for each use. */
  settings: () => { minWriteInterval: number; resyncInterval: number; pluginGracePeriod: number };
  clock: Clock;
  log: Logger;
  metrics: ReportingMetrics;
  queueMetrics?: WorkQueueMetrics;
}

/** Refuses what can't be published as one object of this node. */
export function checkResource(resource: ApiResource | undefined, object: string): ApiResource {
  if (!resource) {
    throw new NodekeeperError(
      "unsupported",
      `the API server does not serve ${object} (is its CustomResourceDefinition installed?)`,
    );
  }
  if (resource.namespaced) {
    throw new NodekeeperError(
      "invalid",
      `${object} is namespaced; only cluster-scoped kinds can be published`,
    );
  }
  return resource;
}
