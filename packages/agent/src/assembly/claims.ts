import type { AgentConfiguration } from "@nodekeeper/api/settings";
import { messageOf, readBootTime, withDeadline } from "@nodekeeper/core/lib";
import { ClaimManager, type ClaimManagerOptions } from "../claims/index.ts";
import type { DeviceSync } from "../devices/index.ts";
import { devicesInUse } from "../intree/index.ts";
import type { PluginHandler } from "../plugins/index.ts";
import { ClaimStore, type StateDatabase } from "../state/index.ts";
import { claimSettings } from "./device-settings.ts";

const KUBELET_TIMEOUT_MS = 10_000;

/** Dependencies of preparing claims. */
export interface ClaimParts
  extends Pick<
    ClaimManagerOptions,
    "client" | "standby" | "devices" | "pods" | "clock" | "log" | "registry" | "watches"
  > {
  configuration: () => AgentConfiguration;
  database: StateDatabase;
  queueMetrics: NonNullable<ClaimManagerOptions["queueMetrics"]>;
}

/** The kubelet's DRA plugin on behalf of drivers; undefined if `devices.kubeletPlugin.enabled` is false. */
export function claimsOf({ configuration, database, ...rest }: ClaimParts): ClaimManager | undefined {
  const { nodeName, hostRoot, devices } = configuration();
  const { enabled, registryDirectory, cdiDirectory, hostPaths, exemptRootDrivers } = devices.kubeletPlugin;
  if (!enabled) return undefined;
  return new ClaimManager({
    ...rest,
    store: new ClaimStore(database),
    boot: readBootTime()?.id ?? "unknown",
    nodeName,
    registryDirectory,
    cdiDirectory,
    hostRoot,
    hostPaths,
    exemptRootDrivers,
    devicesInUse: (signal) =>
      withDeadline(rest.clock, KUBELET_TIMEOUT_MS, "the kubelet's PodResources", signal, (scope) =>
        devicesInUse(configuration().reporting.kubelet.podResourcesSocket, scope),
      ),
    settings: () => claimSettings(configuration()),
  });
}

/** Registers drivers with the publisher of their devices, and with the claim manager unless it is disabled. */
export function driverHandler(
  devices: DeviceSync["handler"],
  claims: ClaimManager | undefined,
): PluginHandler {
  if (!claims) return devices;
  return {
    type: devices.type,
    validate: (candidate) => devices.validate(candidate),
    async register(registration, signal) {
      await claims.register(registration);
      try {
        await devices.register(registration, signal, claims.preparationOf(registration.name));
      } catch (error) {
        claims.deregister(registration, messageOf(error));
        throw error;
      }
    },
    deregister(registration, reason) {
      devices.deregister(registration, reason);
      claims.deregister(registration, reason);
    },
    holdMs: (name) => (claims.hasClaims(name) ? Number.POSITIVE_INFINITY : devices.holdMs()),
    forget: (name, reason) => devices.forget(name, reason),
  };
}
