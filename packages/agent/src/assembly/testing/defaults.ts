// What holds where an operator sets nothing, for tests and benches: of the schema, the one place that has defaults.
import { defaultConfiguration } from "../../config/index.ts";
import { deviceSettings } from "../device-settings.ts";
import { evictionPolicyOf } from "../eviction-policy-settings.ts";
import { evictionSettingsOf, inTreeEvictionSettingsOf } from "../eviction-settings.ts";

const configuration = defaultConfiguration();

export const defaultEvictionPolicy = evictionPolicyOf(configuration);
export const defaultEvictionSettings = evictionSettingsOf(configuration);
export const defaultInTreeEvictionSettings = inTreeEvictionSettingsOf(configuration);
export const defaultDeviceSettings = deviceSettings(configuration);
