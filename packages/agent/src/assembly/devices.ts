import type { ClaimManager } from "../claims/index.ts";
import { DeviceSync } from "../devices/index.ts";
import type { PluginExchanges, PluginHandler } from "../plugins/index.ts";
import { deviceRoutes, driverExchanges } from "../server/index.ts";
import { claimsOf, driverHandler } from "./claims.ts";
import type { AgentContext } from "./context.ts";
import { deviceSettings } from "./device-settings.ts";
import type { AgentPart } from "./part.ts";

/** Devices of drivers, and their claims. */
export interface DevicesPart extends AgentPart {
  sync: DeviceSync;
  /** What drivers register with. */
  handler: PluginHandler;
  /** The last exchanges with a driver; undefined where there is none of that name. */
  exchanges: (driver: string) => PluginExchanges | undefined;
}

/** Builds what keeps ResourceSlices in step with drivers' devices, and prepares claims in their place. */
export function devicesPart(context: AgentContext): DevicesPart {
  const { configuration, client, clock, log, registry, queueMetrics, notify, turns, watch } = context;
  const claims: ClaimManager | undefined = claimsOf({
    ...context,
    onTaints: (driver) => sync.taintsChanged(driver),
    log: log.child({ logger: "claims" }),
  });
  const sync: DeviceSync = new DeviceSync({
    client,
    watch: (resource, selectors, handler) => watch({ ...selectors, resource, handler }),
    nodeName: configuration().nodeName,
    settings: () => deviceSettings(configuration()),
    notify,
    taints: (driver) => claims?.taints(driver),
    ...(claims && {
      untilReady: (driver, signal) => claims.untilReady(driver, signal),
      needsNoPreparation: (driver) => claims.needsNoPreparation(driver),
    }),
    turns,
    clock,
    log: log.child({ logger: "devices" }),
    registry,
    queueMetrics,
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
