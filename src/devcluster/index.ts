export { createDevApiServer, type DevApiServer } from "./apiserver/dev-api-server.ts";
export type { DevStore } from "./apiserver/dev-store.ts";
export type {
  AccessAttributes,
  DevApiServerOptions,
  Fault,
  ReceivedRequest,
  RequestInfo,
} from "./apiserver/options.ts";
