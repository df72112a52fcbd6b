import type { DeepPartial, Pool } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  DeviceBindingDefinition,
  DeviceHealthReportDefinition,
  DevicePreparationDefinition,
  DeviceStatusReportDefinition,
  DriverFeedbackDefinition,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { abortable, LatestValue, NodekeeperError } from "@nodekeeper/core/lib";
import { CallSite } from "./author-error.ts";
import { type AllocationHandler, bindingService } from "./device-allocations.ts";
import { feedbackService, type ProblemHandler, problemLog } from "./device-problems.ts";
import {
  addDeviceService,
  checkStatus,
  contracts,
  type DeviceHealth,
  type DeviceStatus,
  deviceEncoder,
  deviceHealthService,
  deviceStatusService,
  inEachContract,
  type Preparation,
  preparationService,
} from "./device-services.ts";
import { type Report, runReport } from "./run-report.ts";
import { type Plugin, type PluginKind, type PluginOptions, ServedPlugin } from "./served-plugin.ts";

/** A pool of devices in the shape of resource.k8s.io/v1. Omitted fields are empty. */
export type DevicePool = DeepPartial<Pool>;

/** `prepare` and `unprepare` must be set together. Without them, devices need no preparation. */
export interface DeviceDriverOptions extends PluginOptions, Partial<Preparation> {
  /**
   * Yields all pools with all devices, at the start and after each change. An empty list removes all devices. A yielded
   * device must not be modified: yield a new object if it changes.
   */
  devices: Report<DevicePool>;
  /** Yields the health of all devices, at the start and after each change. */
  health?: Report<DeviceHealth>;
  /**
   * Yields the status of all allocated devices, at the start and after each change. A device that is omitted has no
   * status. Called when the agent asks for it, after `restore`. Requires `prepare` and `unprepare`, or `onAllocations`,
   * which receive the UIDs of claims.
   */
  status?: Report<DeviceStatus>;
  /** For devices with binding conditions, which the driver reports by `status`. Default: none are known. */
  onAllocations?: AllocationHandler;
  /** Default: each new problem is logged as a warning, and once more when it has ended. */
  onProblems?: ProblemHandler;
  /** Whether the driver registers with the kubelet itself, and the agent only publishes its devices. Default: false. */
  ownKubeletPlugin?: boolean;
}

/**
 * Serves a driver on a unix socket. The agent publishes its devices as ResourceSlices under the driver's name, a DNS
 * subdomain of at most 63 characters, and serves as the kubelet's DRA plugin on the driver's behalf. The driver needs
 * no access to the API server. Throws `invalid` if options conflict.
 */
export function serveDeviceDriver(options: DeviceDriverOptions): Plugin {
  const site = new CallSite(serveDeviceDriver);
  try {
    return new ServedPlugin(options, kindOf(options), site);
  } catch (error) {
    throw site.error(error);
  }
}

// A pool without any content is probably a device that was yielded in place of a pool.
function checkPools(pools: readonly DevicePool[]): void {
  const wrong = pools.findIndex(({ devices, sharedCounters }) => !devices && !sharedCounters);
  if (wrong < 0) return;
  const name = JSON.stringify(pools[wrong]?.name ?? "").slice(0, 100);
  throw new NodekeeperError(
    "invalid",
    `pool ${name} has no devices: yield pools with their devices, such as [{ devices: [{ name: "gpu-0" }] }]`,
  );
}

function kindOf(options: DeviceDriverOptions): PluginKind {
  const {
    devices,
    health,
    status,
    prepare,
    unprepare,
    restore,
    onAllocations,
    onProblems,
    ownKubeletPlugin,
  } = options;
  if (Boolean(prepare) !== Boolean(unprepare))
    throw new NodekeeperError("invalid", "a driver has both prepare and unprepare, or neither");
  if (restore && !prepare)
    throw new NodekeeperError("invalid", "a driver that restores claims has prepare and unprepare");
  if (ownKubeletPlugin && (prepare || health || status))
    throw new NodekeeperError(
      "invalid",
      "a driver with its own kubelet plugin prepares devices and reports their health and status there",
    );
  if (status && !prepare && !onAllocations)
    throw new NodekeeperError(
      "invalid",
      "status needs prepare and unprepare, or onAllocations: it is of devices that are prepared, or wait to be bound",
    );
  if (onAllocations && !status)
    throw new NodekeeperError("invalid", "onAllocations needs status, which reports the binding conditions");
  const preparation = prepare && unprepare ? { prepare, unprepare, restore } : undefined;
  const encode = deviceEncoder();
  const latestDevices = new LatestValue<DevicePool[]>();
  const latestHealth = new LatestValue<DeviceHealth[]>();
  const latestStatus = new LatestValue<DeviceStatus[]>();
  // The author's report begins when the agent asks for it, which is after `restore`.
  const statusAsked = Promise.withResolvers<void>();
  let handler = onProblems;
  return {
    type: "DRAPlugin",
    versions: [
      ...contracts,
      ...(preparation ? inEachContract(DevicePreparationDefinition).map(({ fullName }) => fullName) : []),
      ...(health ? inEachContract(DeviceHealthReportDefinition).map(({ fullName }) => fullName) : []),
      ...(status ? [DeviceStatusReportDefinition.fullName] : []),
      ...(onAllocations ? [DeviceBindingDefinition.fullName] : []),
      DriverFeedbackDefinition.fullName,
      ...(ownKubeletPlugin ? ["v1.DRAPlugin"] : []),
    ],
    addService(server, { log, stop }) {
      addDeviceService(server, latestDevices, encode, stop);
      if (preparation)
        for (const definition of inEachContract(DevicePreparationDefinition))
          server.add(definition, preparationService(preparation, definition.fullName));
      if (health)
        for (const definition of inEachContract(DeviceHealthReportDefinition))
          server.add(definition, deviceHealthService(latestHealth, stop));
      // v1alpha1 has no such service.
      if (status)
        server.add(
          DeviceStatusReportDefinition,
          deviceStatusService(latestStatus, statusAsked.resolve, stop),
        );
      if (onAllocations) server.add(DeviceBindingDefinition, bindingService(onAllocations));
      // One for all sockets: a new one would log known problems again.
      handler ??= problemLog(log);
      server.add(DriverFeedbackDefinition, feedbackService(handler));
    },
    async work({ clock, log, stop }) {
      const check = (pools: readonly DevicePool[]) => {
        checkPools(pools);
        encode(pools);
      };
      await Promise.all([
        runReport(devices, latestDevices, { clock, log, check }, stop),
        ...(health
          ? [runReport(health, latestHealth, { clock, log: log.child({ report: "health" }) }, stop)]
          : []),
        ...(status
          ? [
              abortable(statusAsked.promise, stop).then(
                () => {
                  const context = { clock, log: log.child({ report: "status" }), check: checkStatus };
                  return runReport(status, latestStatus, context, stop);
                },
                () => {},
              ),
            ]
          : []),
      ]);
    },
  };
}
