import type { KubeObject } from "@nodekeeper/core/kube";
import type { Device, DevicePool } from "../model/model.ts";
import { decodeSpec } from "../model/versions.ts";
import { disconnectedTaint } from "../plan/added-taints.ts";
import { knownSlice, type SliceApi } from "./slice-api.ts";

/**
 * Returns the pools that the agent published, by driver, without the taint of a disconnected driver. Other taints
 * stay, including those that the agent added to unhealthy devices. Omits incomplete pools, because their devices can't
 * be allocated. Empty for v1alpha2, which has no pools.
 * @param objects ResourceSlices of the node, from any client
 */
export function publishedPools(
  api: SliceApi,
  objects: readonly KubeObject[],
  nodeName: string,
): Map<string, DevicePool[]> {
  const { version } = api;
  if (version === "v1alpha2") return new Map();
  const slices = objects
    .filter((object) => knownSlice(api, object, nodeName)?.object)
    .sort((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1))
    .map((object) => decodeSpec(version, object));
  const byDriver = new Map<string, DevicePool[]>();
  for (const [driver, ofDriver] of Map.groupBy(slices, (slice) => slice.driver)) {
    const pools = [...Map.groupBy(ofDriver, ({ pool }) => pool.name)].flatMap(([name, all]) => {
      const newest = Math.max(...all.map(({ pool }) => pool.generation));
      const current = all.filter(({ pool }) => pool.generation === newest);
      const [first] = current;
      if (!first || current.length !== first.pool.resourceSliceCount) return [];
      const { partitionTypeAttribute, skipNodeOperations } = first;
      const fields = {
        ...(partitionTypeAttribute && { partitionTypeAttribute }),
        ...(skipNodeOperations && { skipNodeOperations }),
      };
      const devices = current.flatMap((slice) => (slice.devices ?? []).map(withoutTaint));
      return [
        { name, fields, devices, sharedCounters: current.flatMap((slice) => slice.sharedCounters ?? []) },
      ];
    });
    byDriver.set(driver, pools);
  }
  return byDriver;
}

function withoutTaint(device: Device): Device {
  if (!device.taints?.some(({ key }) => key === disconnectedTaint.key)) return device;
  const { taints, ...rest } = device;
  const others = taints.filter(({ key }) => key !== disconnectedTaint.key);
  return others.length > 0 ? { ...rest, taints: others } : rest;
}
