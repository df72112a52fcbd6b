export { ClaimManager, type ClaimSources } from "./manager.ts";
export { StandbyPlugins } from "./standby-plugins.ts";
export type { DriverClaims } from "./status.ts";
