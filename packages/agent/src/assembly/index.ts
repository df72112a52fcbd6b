export { claimsOf, driverHandler } from "./claims.ts";
export { deviceSettings } from "./device-settings.ts";
export { type EvictionParts, evictionOf } from "./eviction.ts";
export { evictionPolicyOf } from "./eviction-settings.ts";
export { inTreeReporters } from "./in-tree-reporters.ts";
export { containerRuntime, localApiOf, podLifecycle } from "./lifecycle.ts";
export { remoteAccessOf } from "./remote-access.ts";
