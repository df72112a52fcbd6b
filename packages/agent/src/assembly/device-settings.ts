import type { AgentConfiguration } from "../config/index.ts";
import type { DeviceSettings } from "../devices/index.ts";

/** The settings of devices as the configuration has them. */
export function deviceSettings({ devices }: AgentConfiguration): DeviceSettings {
  return {
    wipeDelayMs: devices.wipeDelay,
    taintDelayMs: devices.taintDelay,
    settleMs: devices.settleTime,
    minWriteIntervalMs: devices.minWriteInterval,
    maxMessageBytes: devices.maxMessageSize,
  };
}
