export type { ReportContent, ReportField } from "../src/gen/reporterplugin/v1alpha1/api.ts";
export { createLogger, type Logger } from "../src/lib/index.ts";
export { contentOf, customNodeResource, type JsonValue, metadata, node, spec, status } from "./content.ts";
export {
  defaultAgentSocket,
  type GetPodsOptions,
  PodLifecycleClient,
  type PodLifecycleClientOptions,
  type PodSelector,
  type WatchPodsOptions,
} from "./lifecycle.ts";
export type {
  ContainerIdentity,
  ContainerState,
  ContainerStatus,
  ListedPod,
  PodIdentity,
  PodLifecycleEvent,
  PodLifecycleEventType,
  PodLifecycleItem,
  PodStatus,
} from "./lifecycle-model.ts";
export type { Report } from "./run-report.ts";
export {
  type DeviceDriverOptions,
  type DevicePool,
  type ReporterPlugin,
  type ReporterPluginOptions,
  serveDeviceDriver,
  serveReporterPlugin,
} from "./serve.ts";
export type { Plugin, PluginOptions } from "./served-plugin.ts";
export type { RegistrationState } from "./services.ts";
