export { preparedOf } from "./cdi-file.ts";
export { ClaimRecords } from "./claim-records.ts";
export { DriverStates, type DriverStatesOptions } from "./driver-state.ts";
export { HostFiles } from "./host-files.ts";
export { ClaimManager, type ClaimSources } from "./manager.ts";
export { StandbyPlugins } from "./standby-plugins.ts";
export type { DriverClaims } from "./status.ts";
