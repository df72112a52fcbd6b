import { messageOf, readBootTime, withDeadline } from "@nodekeeper/core/lib";
import { ClaimManager, type ClaimManagerOptions } from "../claims/index.ts";
import type { AgentConfiguration } from "../config/index.ts";
import { devicesInUse, kubeletReporterSettingsOf } from "../intree/index.ts";
import type { PluginHandler } from "../plugins/index.ts";
import { ClaimStore, type StateDatabase } from "../state/index.ts";
import { claimSettings } from "./device-settings.ts";

const KUBELET_TIMEOUT_MS = 10_000;

/** What preparing claims needs beside the configuration. */
export interface ClaimParts
  extends Pick<ClaimManagerOptions, "client" | "onTaints" | "clock" | "log" | "registry"> {
  configuration: () => AgentConfiguration;
  database: StateDatabase;
  queueMetrics: NonNullable<ClaimManagerOptions["queueMetrics"]>;
}

/** The kubelet's DRA plugin in place of drivers; undefined where it is off. */
export function claimsOf({ configuration, database, ...rest }: ClaimParts): ClaimManager | undefined {
  const { nodeName, hostRoot, devices } = configuration();
  const { enabled, registryDirectory, cdiDirectory, hostPaths } = devices.kubeletPlugin;
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
    devicesInUse: (signal) =>
      withDeadline(rest.clock, KUBELET_TIMEOUT_MS, "the kubelet's PodResources", signal, (scope) =>
        devicesInUse(kubeletReporterSettingsOf(configuration()), scope),
      ),
    settings: () => claimSettings(configuration()),
  });
}

/** Takes drivers for their devices, and for their claims where these are prepared. */
export function driverHandler(devices: PluginHandler, claims: ClaimManager | undefined): PluginHandler {
  if (!claims) return devices;
  return {
    type: devices.type,
    validate: (candidate) => devices.validate(candidate),
    async register(registration, signal) {
      await claims.register(registration);
      try {
        await devices.register(registration, signal);
      } catch (error) {
        claims.deregister(registration, messageOf(error));
        throw error;
      }
    },
    deregister(registration, reason) {
      devices.deregister(registration, reason);
      claims.deregister(registration, reason);
    },
  };
}
