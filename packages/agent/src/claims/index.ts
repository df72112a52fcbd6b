export { ClaimRecords } from "./claim-records.ts";
export { ClaimStatusApi } from "./claim-status-api.ts";
export { ClaimStatuses } from "./claim-statuses.ts";
export { DriverStates, type DriverStatesOptions } from "./driver-state.ts";
export { HostFiles } from "./host-files.ts";
export { ClaimManager, type ClaimSources } from "./manager.ts";
export { preparedOf } from "./prepared-claim.ts";
export { StandbyPlugins } from "./standby-plugins.ts";
export type { DriverClaims } from "./status.ts";
