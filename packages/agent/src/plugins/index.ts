// Discovery and registration of plugins, as in the kubelet's pkg/kubelet/pluginmanager. Terms:
// registration socket: a unix socket in a watched directory that serves pluginregistration v1.
// endpoint: the socket of the plugin's API; handler: the part of the agent that serves plugins of one type.
// session: the lifetime of one socket file: handshake, liveness probes, deregistration.
// owner: the socket that holds a plugin name; superseded: a newer socket has taken over the name.
// refused: notified of the reason and retried slowly; failed: retried with backoff.
export { type CallError, joinedErrors } from "./call-error.ts";
export {
  type Exchange,
  ExchangeLog,
  type PluginExchanges,
  shownJson,
} from "./exchange-log.ts";
export { PluginManager } from "./manager.ts";
export { checkPluginInfo, checkSupportedVersion } from "./plugin-info.ts";
export { RegistrationClient } from "./registration-client.ts";
export type { PluginChange, PluginStatus } from "./status.ts";
export type { PluginHandler, PluginRegistration, PresentedPlugin } from "./types.ts";
