import type { AgentConfiguration } from "../config/index.ts";
import type { DeviceSettings } from "../devices/index.ts";

/** Settings of devices, from the configuration. */
export function deviceSettings({ devices }: AgentConfiguration): DeviceSettings {
  return {
    wipeDelayMs: devices.wipeDelay,
    taintDelayMs: devices.taintDelay,
    settleMs: devices.settleTime,
    minWriteIntervalMs: devices.minWriteInterval,
    maxMessageBytes: devices.maxMessageSize,
  };
}
