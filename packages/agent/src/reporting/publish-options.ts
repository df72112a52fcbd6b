import type { ApiResource, KubeClient, WatchHandler } from "@nodekeeper/core/kube";
import {
  type Clock,
  type HealthCheck,
  type Logger,
  type LoopTurns,
  NodekeeperError,
  type Runnable,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { ReporterStore } from "../state/index.ts";
import type { PluginContent } from "./content.ts";
import type { JsonObject } from "./json.ts";
import type { KindPolicy } from "./kinds.ts";
import type { ReportingMetrics } from "./metrics.ts";

/** Emits an Event about this node, with a reason in UpperCamelCase and a message. */
export type Notify = (reason: string, message: string) => void;

/** A watch of one object, with its health. */
export interface ObjectWatch extends Runnable {
  healthCheck(): HealthCheck;
}

export interface PublisherOptions {
  client: KubeClient;
  /** Field manager of the client's applies. */
  fieldManager: string;
  /** Creates a watch of one object by name. The publisher runs it. */
  watch: (resource: ApiResource, name: string, handler: WatchHandler) => ObjectWatch;
  store: ReporterStore;
  /** Name of the Node, and of the CustomNodeResource and every other published object. */
  nodeName: string;
  policies: ReadonlyMap<string, KindPolicy>;
  contents: () => ReadonlyMap<string, PluginContent>;
  /** Names of the plugins that are lost, which rank below live ones. */
  lost: () => ReadonlySet<string>;
  /** Startup grace period for running plugins to register again, milliseconds. */
  returnMs: number;
  /** Called before each write, to persist the content it publishes. Never rejects. */
  beforeWrite: () => Promise<void>;
  /** Emits Events about the Node. */
  notify: Notify;
  /** Whether a taint that the agent added to the CustomNodeResource stays as it is, as eviction's do in dry run. */
  isFrozenTaint: (taint: JsonObject) => boolean;
  /** Live settings, read on each use. Milliseconds. */
  settings: () => { minWriteInterval: number; resyncInterval: number; pluginGracePeriod: number };
  /** For large objects. */
  turns: LoopTurns;
  clock: Clock;
  log: Logger;
  metrics: ReportingMetrics;
  queueMetrics?: WorkQueueMetrics;
  random?: () => number;
}

/** Throws if a kind cannot be published as one object for this node. */
export function checkResource(resource: ApiResource | undefined, object: string): ApiResource {
  if (!resource) {
    throw new NodekeeperError(
      "unsupported",
      `the API server does not serve ${object} (is its CustomResourceDefinition installed?)`,
      { id: "NK1208" },
    );
  }
  if (resource.namespaced) {
    throw new NodekeeperError(
      "invalid",
      `${object} is namespaced; only cluster-scoped kinds can be published`,
      { id: "NK1804" },
    );
  }
  return resource;
}
