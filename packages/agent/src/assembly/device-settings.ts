import type { AgentConfiguration } from "@nodekeeper/api/settings";
import type { ClaimSettings } from "../claims/index.ts";
import type { DeviceSettings } from "../devices/index.ts";

/** Returns the settings of devices from the configuration. */
export function deviceSettings({ devices }: AgentConfiguration): DeviceSettings {
  return {
    wipeDelayMs: devices.wipeDelay,
    // If the agent prepares no claims, a disconnected driver may still serve its own plugin to the kubelet.
    taintDelayMs: devices.kubeletPlugin.enabled ? devices.taintDelay : Number.POSITIVE_INFINITY,
    settleTimeMs: devices.settleTime,
    minWriteIntervalMs: devices.minWriteInterval,
    maxMessageBytes: devices.maxMessageSize,
  };
}

/** Returns the settings of claims from the configuration. */
export function claimSettings({ devices }: AgentConfiguration): ClaimSettings {
  return {
    callTimeoutMs: devices.kubeletPlugin.callTimeout,
    wipeDelayMs: devices.wipeDelay,
    settleTimeMs: devices.settleTime,
  };
}
