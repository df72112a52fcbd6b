export { type DialOptions, dialUnix } from "./dial-unix.ts";
export { fromGrpcError } from "./grpc-errors.ts";
export { PluginManager, type PluginManagerOptions } from "./manager.ts";
export type { PluginCandidate } from "./plugin-info.ts";
export type { ScanLimits } from "./socket-scan.ts";
export { type PluginState, type PluginStatus, pluginStates } from "./status.ts";
export type { PluginHandler, PluginRegistration } from "./types.ts";
