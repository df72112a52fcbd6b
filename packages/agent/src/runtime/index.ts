export { CriRuntime, type CriRuntimeOptions } from "./cri-runtime.ts";
export { broadcastsEvents } from "./event-delivery.ts";
export { FoundRuntime, type FoundRuntimeOptions } from "./found-runtime.ts";
export type { RuntimeSettings } from "./settings.ts";
export type {
  ContainerStats,
  CpuUsage,
  MemoryUsage,
  PodStats,
  ProcessUsage,
  WritableLayerUsage,
} from "./stats.ts";
export type { RuntimeStats } from "./stats-reader.ts";
export type {
  CallInFlight,
  ContainerState,
  ContainerStatus,
  HintedExit,
  ListedContainer,
  Pod,
  PodStatus,
  Runtime,
  RuntimeCondition,
  RuntimeHint,
  RuntimeVersion,
  SandboxStatus,
} from "./types.ts";
