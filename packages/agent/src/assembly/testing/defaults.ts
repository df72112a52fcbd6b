// Default settings for tests and benches, from the schema.

import { type EvictionPolicy, evictionPolicyOf } from "@nodekeeper/api/decide";
import { defaultConfiguration } from "@nodekeeper/api/settings";

const configuration = defaultConfiguration();

/** The default policy with all plugins live, because most tests are about evictions. */
export const liveEvictionPolicy: EvictionPolicy = { ...evictionPolicyOf(configuration), dryRunPlugins: [] };
export const defaultEvictionSettings = configuration.eviction;
export const defaultInTreeEvictionSettings = configuration.eviction;
export const defaultReportingSettings = configuration.reporting;
export const defaultDeviceSettings = configuration.devices;
