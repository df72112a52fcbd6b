// Default settings for tests and benches, from the schema.

import { evictionPolicyOf } from "@nodekeeper/api/decide";
import { defaultConfiguration } from "@nodekeeper/api/settings";

const configuration = defaultConfiguration();

export const defaultEvictionPolicy = evictionPolicyOf(configuration);
export const defaultEvictionSettings = configuration.eviction;
export const defaultInTreeEvictionSettings = configuration.eviction;
export const defaultReportingSettings = configuration.reporting;
export const defaultDeviceSettings = configuration.devices;
