import { DeviceZoneRefused } from "@nodekeeper/api/errors";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import { quote } from "@nodekeeper/core/lib";
import type { TopologyManager } from "./topology-policy.ts";

/** Settings of the kubelet reporter. Durations are in milliseconds, sizes in bytes. */
export interface KubeletReporterSettings {
  /** Path of the kubelet's PodResources socket in this process's mount namespace. */
  readonly podResourcesSocket: string;
  /** Timeout of a reading, which makes two calls. */
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
  /** Interval of readings without an event. */
  readonly resyncIntervalMs: number;
  /** Interval of readings after a failure. */
  readonly retryIntervalMs: number;
  /** Delay between an event and the reading, to combine several events. */
  readonly debounceMs: number;
  /** Zone types by resource name, for example "nvidia.com/gpu" to "GPU". */
  readonly deviceZones: ReadonlyMap<string, string>;
  /** Maximum distance of the nearest NUMA nodes to be siblings. */
  readonly siblingNumaMaxDistance: number;
  /** The kubelet's configuration file, read for its topology manager policy. If empty, the policy is not reported. */
  readonly configFile: string;
  /** Topology manager settings that override the file. */
  readonly topologyManager?: TopologyManager;
}

// Not configurable.
const fixed = { timeoutMs: 10_000, maxAnswerBytes: 4 * 1024 * 1024, retryIntervalMs: 5_000 } as const;

/** Returns the settings from the configuration. Throws `invalid` for a malformed device zone. */
export function kubeletReporterSettingsOf({
  reporting: { kubelet },
}: Pick<AgentConfiguration, "reporting">): KubeletReporterSettings {
  return {
    ...fixed,
    podResourcesSocket: kubelet.podResourcesSocket,
    resyncIntervalMs: kubelet.resyncInterval,
    debounceMs: kubelet.debounce,
    deviceZones: parseDeviceZones(kubelet.deviceZones),
    siblingNumaMaxDistance: kubelet.siblingNumaMaxDistance,
    configFile: kubelet.configFile,
  };
}

/** Format of an entry of `parseDeviceZones`. The zone types Socket and Numa are reserved. */
export const deviceZonePattern = /^[^\s=]{1,316}=(?!(?:Socket|Numa)$)[A-Za-z][A-Za-z0-9_.-]{0,62}$/;

/**
 * Parses "resource=zoneType" entries, for example "nvidia.com/gpu=GPU". Throws `invalid` for a malformed entry and for
 * a resource with two types.
 */
export function parseDeviceZones(entries: readonly string[]): ReadonlyMap<string, string> {
  const zones = new Map<string, string>();
  for (const entry of entries) {
    if (!deviceZonePattern.test(entry)) {
      throw new DeviceZoneRefused({
        entry: quote(entry),
        problem: "expected resource=zoneType, such as nvidia.com/gpu=GPU",
      });
    }
    const at = entry.indexOf("=");
    const [resource, type] = [entry.slice(0, at), entry.slice(at + 1)];
    const known = zones.get(resource);
    if (known !== undefined && known !== type) {
      throw new DeviceZoneRefused({
        entry: quote(entry),
        problem: `${resource} already has the type ${known}`,
      });
    }
    zones.set(resource, type);
  }
  return zones;
}
