export { ClaimManager, type ClaimManagerOptions, type ClaimSettings } from "./manager.ts";
export type { ClaimStatus, DriverClaims } from "./status.ts";
