import { DeviceZoneRefused } from "@nodekeeper/api/errors";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import { quote } from "@nodekeeper/core/lib";

/** Settings of the kubelet reporter. */
export type KubeletReporterSettings = AgentConfiguration["reporting"]["kubelet"];

/**
 * Parses the setting's "resource=zoneType" entries, for example "nvidia.com/gpu=GPU". Throws `invalid` for a resource
 * with two types.
 */
export function parseDeviceZones(entries: readonly string[]): ReadonlyMap<string, string> {
  const zones = new Map<string, string>();
  for (const entry of entries) {
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
