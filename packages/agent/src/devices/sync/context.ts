import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { watchHeartbeat } from "@nodekeeper/core/grpc";
import type { EventInput, KubeApiClient, LeaseTimes, Watcher, WatchTarget } from "@nodekeeper/core/kube";
import type { Clock, Logger, LoopTurns, WorkQueue } from "@nodekeeper/core/lib";
import type { DeviceMetrics } from "./metrics.ts";
import type { NodeUid } from "./node-uid.ts";

/** The `devices` section of the configuration. */
export type DeviceSettings = AgentConfiguration["devices"];

/** What the module takes from the agent. */
export interface DeviceContext {
  client: KubeApiClient;
  /** Creates a watch, which the caller runs. */
  watch: (target: WatchTarget) => Watcher;
  nodeName: string;
  settings: () => DeviceSettings;
  notify: (event: Pick<EventInput, "type" | "reason" | "message">) => void;
  /** Spreads work on large messages over turns of the event loop. */
  turns: LoopTurns;
  clock: Clock;
  log: Logger;
  /**
   * Interval between full comparisons of the slices with the API server's, and checks of the server's version and
   * features, milliseconds. Default 10 min.
   */
  recheckMs?: number;
  /** Times of the elections for pools beyond the node. Default: those of `LeaseElection`. */
  leaseTimes?: LeaseTimes;
  /** Default `watchHeartbeat`. Replaced in tests whose clock does not wait for answers. */
  heartbeat?: typeof watchHeartbeat;
}

/** Whose slices a sync keeps: those of the node, or those of one driver's pools beyond it. */
export interface SliceScope {
  /** Undefined for pools beyond the node. */
  nodeName: string | undefined;
  /** Undefined for all drivers of the node. */
  driver: string | undefined;
}

/** Dependencies shared by the parts of this directory. */
export interface SyncContext extends DeviceContext {
  scope: SliceScope;
  nodeUid: NodeUid;
  /** Names of drivers whose slices must be compared with the desired state, and `EVERY_DRIVER`. */
  queue: WorkQueue;
  metrics: DeviceMetrics;
}

/** Queue key for all drivers. No driver has this name. */
export const EVERY_DRIVER = "";

/**
 * Returns how long a driver must be disconnected or unresponsive before its devices are tainted, in milliseconds.
 * Infinity if the agent prepares no claims, because the driver may still serve its own plugin to the kubelet.
 */
export function taintDelayOf({ taintDelay, kubeletPlugin }: DeviceSettings): number {
  return kubeletPlugin.enabled ? taintDelay : Number.POSITIVE_INFINITY;
}
