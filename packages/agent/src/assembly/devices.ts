import { DeviceSync } from "../devices/index.ts";
import type { PluginExchanges, PluginHandler } from "../plugins/index.ts";
import { deviceRoutes, driverExchanges } from "../server/index.ts";
import { claimsOf, driverHandler } from "./claims.ts";
import type { AgentContext } from "./context.ts";
import type { EvictionPart } from "./eviction.ts";
import type { LifecyclePart } from "./lifecycle.ts";
import type { AgentPart } from "./part.ts";

/** Devices of drivers, and their claims. */
export interface DevicesPart extends AgentPart {
  sync: DeviceSync;
  /** Handles registrations of drivers. */
  handler: PluginHandler;
  /** Returns the most recent calls to a driver. Undefined if there is no such driver. */
  exchanges: (driver: string) => PluginExchanges | undefined;
}

/**
 * Builds the publisher of drivers' devices as ResourceSlices, and the claim manager that prepares claims on their
 * behalf.
 */
export function devicesPart(
  context: AgentContext,
  { lifecycle, eviction }: { lifecycle: LifecyclePart | undefined; eviction: EvictionPart | undefined },
): DevicesPart {
  const { configuration, log } = context;
  const { nodeName } = configuration();
  const settings = () => configuration().devices;
  const sync = new DeviceSync(
    { ...context, nodeName, settings, log: log.child({ logger: "devices" }) },
    context,
  );
  const claims = claimsOf(context, {
    devices: sync.handler,
    pods: lifecycle?.generator,
    serviceAccountOf: eviction?.serviceAccountOf,
    reportedDevice: (driver, pool, device) => sync.reportedDevice(driver, pool, device),
  });
  return {
    sync,
    handler: driverHandler(sync.handler, claims),
    exchanges: (driver) => driverExchanges(driver, sync, claims?.exchanges(driver)),
    runnables: [sync, ...(claims ? [claims] : [])],
    checks: [...sync.healthChecks(), ...(claims?.healthChecks() ?? [])],
    routes: deviceRoutes(sync, () => claims?.status() ?? []),
  };
}
