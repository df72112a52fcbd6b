import { NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { TopologyManager } from "./topology-policy.ts";

/** Settings of the kubelet reporter. Durations are milliseconds, sizes bytes. */
export interface KubeletReporterSettings {
  /** The socket of the kubelet's PodResources API, as this process sees it. */
  readonly podResourcesSocket: string;
  /** How long the two calls of one reading may take together. */
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
  /** How often the kubelet is asked although nothing happened. */
  readonly resyncIntervalMs: number;
  /** How soon it is asked again after it did not answer. */
  readonly retryIntervalMs: number;
  /** How long it is waited after an event, for others that come with it. */
  readonly debounceMs: number;
  /** Zone types by resource name, such as "nvidia.com/gpu" to "GPU". */
  readonly deviceZones: ReadonlyMap<string, string>;
  /** The kubelet's configuration file, for its topology policy; empty: the policy is not reported. */
  readonly configFile: string;
  /** The topology policy of a kubelet that has it from elsewhere, such as its flags; goes before the file. */
  readonly topologyManager?: TopologyManager;
}

/** The settings where the configuration says nothing else. */
export const defaultKubeletReporterSettings: KubeletReporterSettings = {
  podResourcesSocket: "/var/lib/kubelet/pod-resources/kubelet.sock",
  timeoutMs: 10_000,
  maxAnswerBytes: 4 * 1024 * 1024,
  resyncIntervalMs: 30_000,
  retryIntervalMs: 5_000,
  debounceMs: 500,
  deviceZones: new Map(),
  configFile: "/var/lib/kubelet/config.yaml",
};

/** How an entry of `parseDeviceZones` must look; the zone types of the tree itself are not for devices. */
export const deviceZonePattern = /^[^\s=]{1,316}=(?!(?:Socket|Numa)$)[A-Za-z][A-Za-z0-9_.-]{0,62}$/;

/**
 * Reads "resource=zoneType" entries, such as "nvidia.com/gpu=GPU". Throws `invalid` for one that is none, and for a
 * resource that is given two types.
 */
export function parseDeviceZones(entries: readonly string[]): ReadonlyMap<string, string> {
  const zones = new Map<string, string>();
  for (const entry of entries) {
    if (!deviceZonePattern.test(entry)) {
      throw new NodekeeperError(
        "invalid",
        `device zone ${quote(entry)}: expected resource=zoneType, such as nvidia.com/gpu=GPU`,
      );
    }
    const at = entry.indexOf("=");
    const [resource, type] = [entry.slice(0, at), entry.slice(at + 1)];
    const known = zones.get(resource);
    if (known !== undefined && known !== type) {
      throw new NodekeeperError("invalid", `device zone ${quote(entry)}: ${resource} is ${known} already`);
    }
    zones.set(resource, type);
  }
  return zones;
}
