import type { EvictionPolicy } from "@nodekeeper/api/decide";
import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { EventRecorder, KubeApiClient, KubeMetrics } from "@nodekeeper/core/kube";
import type { Clock, Logger, WorkQueueMetrics } from "@nodekeeper/core/lib";
import type { Marks } from "../state/index.ts";
import type { EvictionMetrics } from "./metrics.ts";
import type { QosLevelReader } from "./observe/qos-level.ts";

/** Dependencies that the parts of eviction share. */
export interface EvictionContext {
  nodeName: string;
  client: KubeApiClient;
  settings: () => EvictionSettings;
  policy: () => EvictionPolicy;
  /** Events about evictions and taints. */
  events: Pick<EventRecorder, "record">;
  marks: Pick<Marks, "add" | "addMissing">;
  /** As for `observeJson`. */
  qosLevelOf?: QosLevelReader;
  clock: Clock;
  log: Logger;
  metrics: EvictionMetrics;
  kubeMetrics: KubeMetrics;
  queueMetrics: WorkQueueMetrics;
}
