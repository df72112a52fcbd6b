import {
  type DeepPartial,
  DeviceDriverDefinition,
  type Pool,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/api.ts";
import {
  DeviceHealthReportDefinition,
  DevicePreparationDefinition,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import { LatestValue, NodekeeperError } from "@nodekeeper/core/lib";
import { CallSite } from "./author-error.ts";
import {
  type DeviceHealth,
  deviceHealthService,
  deviceService,
  type Preparation,
  preparationService,
} from "./device-services.ts";

import { type Report, runReport } from "./run-report.ts";
import { type Plugin, type PluginKind, type PluginOptions, ServedPlugin } from "./served-plugin.ts";

/** A pool of devices in the shape of resource.k8s.io/v1; what is left out is empty. */
export type DevicePool = DeepPartial<Pool>;

/** `prepare` and `unprepare` come together or not at all: without them devices need no preparation. */
export interface DeviceDriverOptions extends PluginOptions, Partial<Preparation> {
  /**
   * Yields all pools with all devices, again each time something changes. No pool at all: there is no device. A device that was
   * yielded is compared with the next value: yield another object where it changes.
   */
  devices: Report<DevicePool>;
  /** Yields the health of all devices, again each time it changes. */
  health?: Report<DeviceHealth>;
  /** The driver registers with the kubelet by itself, and the agent only publishes its devices. Default false. */
  ownKubeletPlugin?: boolean;
}

/**
 * Serves a driver on a unix socket. The agent keeps ResourceSlices in step with its devices under the driver's name, a DNS
 * subdomain of at most 63 characters, and prepares them for pods as the kubelet's DRA plugin in the driver's place; the
 * driver needs no access to the API server. Throws `invalid` where options contradict.
 */
export function serveDeviceDriver(options: DeviceDriverOptions): Plugin {
  const site = new CallSite(serveDeviceDriver);
  try {
    return new ServedPlugin(options, kindOf(options), site);
  } catch (error) {
    throw site.error(error);
  }
}

function kindOf({ devices, health, prepare, unprepare, ownKubeletPlugin }: DeviceDriverOptions): PluginKind {
  if (Boolean(prepare) !== Boolean(unprepare))
    throw new NodekeeperError("invalid", "a driver has both prepare and unprepare, or neither");
  if (ownKubeletPlugin && (prepare || health))
    throw new NodekeeperError(
      "invalid",
      "a driver with its own kubelet plugin prepares devices and reports their health there",
    );
  const preparation = prepare && unprepare ? { prepare, unprepare } : undefined;
  const latestDevices = new LatestValue<DevicePool[]>();
  const latestHealth = new LatestValue<DeviceHealth[]>();
  return {
    type: "DRAPlugin",
    versions: [
      "nodekeeper.devices.v1alpha1",
      ...(preparation ? [DevicePreparationDefinition.fullName] : []),
      ...(health ? [DeviceHealthReportDefinition.fullName] : []),
      ...(ownKubeletPlugin ? ["v1.DRAPlugin"] : []),
    ],
    addService(server, { stop }) {
      server.add(DeviceDriverDefinition, deviceService(latestDevices, stop));
      if (preparation) server.add(DevicePreparationDefinition, preparationService(preparation));
      if (health) server.add(DeviceHealthReportDefinition, deviceHealthService(latestHealth, stop));
    },
    async work({ clock, log, stop }) {
      await Promise.all([
        runReport(devices, latestDevices, clock, log, stop),
        ...(health ? [runReport(health, latestHealth, clock, log.child({ report: "health" }), stop)] : []),
      ]);
    },
  };
}
