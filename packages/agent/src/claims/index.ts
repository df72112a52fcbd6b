export { ClaimManager, type ClaimManagerOptions } from "./manager.ts";
export { StandbyPlugins } from "./standby-plugins.ts";
export type { DriverClaims } from "./status.ts";
