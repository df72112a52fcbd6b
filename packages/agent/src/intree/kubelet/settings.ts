import { NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { AgentConfiguration } from "../../config/index.ts";
import type { TopologyManager } from "./topology-policy.ts";

/** Settings of the kubelet reporter. Durations are milliseconds, sizes bytes. */
export interface KubeletReporterSettings {
  /** Path of the kubelet's PodResources socket in this process's mount namespace. */
  readonly podResourcesSocket: string;
  /** Timeout of the two calls of one reading together. */
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
  /** Interval of readings without an event. */
  readonly resyncIntervalMs: number;
  /** Interval of readings after a failure. */
  readonly retryIntervalMs: number;
  /** Delay between an event and the reading, to combine several events. */
  readonly debounceMs: number;
  /** Zone types by resource name, such as "nvidia.com/gpu" to "GPU". */
  readonly deviceZones: ReadonlyMap<string, string>;
  /** The kubelet's configuration file, read for its topology manager policy; empty: the policy is not reported. */
  readonly configFile: string;
  /** Topology manager settings that override the file. */
  readonly topologyManager?: TopologyManager;
}

// What no operator has to set.
const fixed = { timeoutMs: 10_000, maxAnswerBytes: 4 * 1024 * 1024, retryIntervalMs: 5_000 } as const;

/** All settings, of the configuration. Throws `invalid` for a device zone that is none. */
export function kubeletReporterSettingsOf({
  reporting: { kubelet },
}: Pick<AgentConfiguration, "reporting">): KubeletReporterSettings {
  return {
    ...fixed,
    podResourcesSocket: kubelet.podResourcesSocket,
    resyncIntervalMs: kubelet.resyncInterval,
    debounceMs: kubelet.debounce,
    deviceZones: parseDeviceZones(kubelet.deviceZones),
    configFile: kubelet.configFile,
  };
}

/** Format of an entry of `parseDeviceZones`. The zone types Socket and Numa are reserved. */
export const deviceZonePattern = /^[^\s=]{1,316}=(?!(?:Socket|Numa)$)[A-Za-z][A-Za-z0-9_.-]{0,62}$/;

/**
 * Parses "resource=zoneType" entries, such as "nvidia.com/gpu=GPU". Throws `invalid` for a malformed entry and for a
 * resource with two types.
 */
export function parseDeviceZones(entries: readonly string[]): ReadonlyMap<string, string> {
  const zones = new Map<string, string>();
  for (const entry of entries) {
    if (!deviceZonePattern.test(entry)) {
      throw new NodekeeperError(
        "invalid",
        `device zone ${quote(entry)}: expected resource=zoneType, such as nvidia.com/gpu=GPU`,
        { id: "NK1003" },
      );
    }
    const at = entry.indexOf("=");
    const [resource, type] = [entry.slice(0, at), entry.slice(at + 1)];
    const known = zones.get(resource);
    if (known !== undefined && known !== type) {
      throw new NodekeeperError(
        "invalid",
        `device zone ${quote(entry)}: ${resource} already has the type ${known}`,
        { id: "NK1003" },
      );
    }
    zones.set(resource, type);
  }
  return zones;
}
