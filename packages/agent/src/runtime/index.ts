// Client of the container runtime (CRI runtime.v1). Terms:
// pod: the sandboxes and containers with the same pod UID; status: PodSandboxStatus and ContainerStatus of a pod.
// list: a complete list of sandboxes and containers, or a partial one by state or sandbox.
// hint: a container event of the runtime. stats: resource usage of containers and pods.
// anomaly: something invalid in a response, counted and logged once.
export { CriRuntime, type CriRuntimeOptions } from "./cri-runtime.ts";
export { broadcastsEvents } from "./event-delivery.ts";
export { FoundRuntime, type FoundRuntimeOptions } from "./found-runtime.ts";
export { type RuntimeSettings, runtimeSettingsOf } from "./settings.ts";
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
