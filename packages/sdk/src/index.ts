export type { ReportContent, ReportField } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
export { createLogger, type Logger } from "@nodekeeper/core/lib";
export type { ActivePod } from "./active-pod.ts";
export { contentOf, customNodeResource, type JsonValue, metadata, node, spec, status } from "./content.ts";
export type { AllocationHandler, ClaimToBind } from "./device-allocations.ts";
export type {
  AllocatedDevice,
  ClaimPod,
  ClaimRequest,
  ClaimToPrepare,
  ClaimToUnprepare,
  ContainerEdits,
  DeviceConfiguration,
  DeviceNode,
  Hook,
  IntelRdt,
  Mount,
  NetDevice,
  PreparedClaim,
  PreparedDevice,
  RecordedClaim,
} from "./device-claim.ts";
export { type DeviceDriverOptions, type DevicePool, serveDeviceDriver } from "./device-driver.ts";
export type { DriverProblem, ProblemHandler } from "./device-problems.ts";
export type {
  DeviceCondition,
  DeviceHealth,
  DeviceStatus,
  NetworkData,
  Preparation,
} from "./device-services.ts";
export type {
  EvictionCondition,
  NamedPod,
  PodsToEvict,
  PodToEvict,
  ThresholdState,
  TopPods,
} from "./eviction-answers.ts";
export type { EvictionRecord } from "./eviction-record.ts";
export type { EvictionCall, TopPodsCall } from "./eviction-service.ts";
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
  PodList,
  PodStatus,
} from "./lifecycle-model.ts";
export type { Report } from "./run-report.ts";
export {
  type EvictionPlugin,
  type EvictionPluginOptions,
  type ReporterPlugin,
  type ReporterPluginOptions,
  serveEvictionPlugin,
  serveReporterPlugin,
} from "./serve.ts";
export type { Plugin, PluginOptions } from "./served-plugin.ts";
export type { RegistrationState } from "./services.ts";
