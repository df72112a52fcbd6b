import type { ClaimSettings } from "../claims/index.ts";
import type { AgentConfiguration } from "../config/index.ts";
import type { DeviceSettings } from "../devices/index.ts";

/** Settings of devices, from the configuration. */
export function deviceSettings({ devices }: AgentConfiguration): DeviceSettings {
  return {
    wipeDelayMs: devices.wipeDelay,
    // Where the agent prepares no claims, a driver that is disconnected may well have its own plugin for the kubelet.
    taintDelayMs: devices.kubeletPlugin.enabled ? devices.taintDelay : Number.POSITIVE_INFINITY,
    settleTimeMs: devices.settleTime,
    minWriteIntervalMs: devices.minWriteInterval,
    maxMessageBytes: devices.maxMessageSize,
  };
}

/** Settings of claims on these devices, from the configuration. */
export function claimSettings({ devices }: AgentConfiguration): ClaimSettings {
  return {
    callTimeoutMs: devices.kubeletPlugin.callTimeout,
    wipeDelayMs: devices.wipeDelay,
    settleTimeMs: devices.settleTime,
  };
}
