import { KindNotPublishable, KindNotServed } from "@nodekeeper/api/errors";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { ApiResource, KubeClient, Watcher, WatchTarget } from "@nodekeeper/core/kube";
import type { BootTime, Clock, Logger, LoopTurns, WorkQueueMetrics } from "@nodekeeper/core/lib";
import type { ReporterStore } from "../state/index.ts";
import type { Contents } from "./content.ts";
import type { JsonObject } from "./json.ts";
import type { KindPolicy } from "./kinds.ts";
import type { ReportingMetrics } from "./metrics.ts";

/** The `reporting` section of the configuration. Live, read on each use. */
export type ReportingSettings = AgentConfiguration["reporting"];

/** Dependencies shared by all parts of reporting. */
export interface ReportingContext {
  store: ReporterStore;
  policies: ReadonlyMap<string, KindPolicy>;
  settings: () => ReportingSettings;
  /** Startup grace period in which running plugins can register again, in milliseconds. */
  returnMs: number;
  /** Boot ID and uptime of the machine, to determine how long a plugin was away before the agent started. */
  bootTime: () => BootTime | undefined;
  /** Emits an Event for this node. The reason is in UpperCamelCase. */
  notify: (reason: string, message: string) => void;
  /** Yields to the event loop while large messages and objects are processed. */
  turns: LoopTurns;
  clock: Clock;
  log: Logger;
  metrics: ReportingMetrics;
}

/** The plugins' contents, as read by the publisher. */
export interface Reports {
  /** Last content of each plugin, by name. */
  contents(): Contents;
  /** Names of lost plugins, which rank below live ones. */
  lost(): ReadonlySet<string>;
  /** Called before each write to persist the content that it publishes. Never rejects. */
  flush(): Promise<void>;
}

/** Dependencies of the publisher in addition to the module's context. */
export interface PublisherOptions {
  client: KubeClient;
  /** Field manager of the client's applies. */
  fieldManager: string;
  /** Creates a watch, which the publisher runs. */
  watch: (target: WatchTarget) => Pick<Watcher, "run" | "healthCheck">;
  /** Name of the Node, and of the CustomNodeResource and every other published object. */
  nodeName: string;
  reports: Reports;
  /** Whether a taint that the agent added to the CustomNodeResource must not be changed, as for eviction in dry run. */
  isFrozenTaint: (taint: JsonObject) => boolean;
  /** Called with the frozen taints of the agent on an object that was read or written. */
  onFrozenTaints?: (taints: readonly JsonObject[]) => void;
  queueMetrics?: WorkQueueMetrics;
  random?: () => number;
}

export type PublishContext = ReportingContext & PublisherOptions;

/** Returns the resource. Throws if the kind cannot be published as one object per node. */
export function checkResource(resource: ApiResource | undefined, object: string): ApiResource {
  if (!resource) {
    throw new KindNotServed({ object });
  }
  if (resource.namespaced) {
    throw new KindNotPublishable({ object });
  }
  return resource;
}
