export type { CgroupVersion } from "./cgroup-layout.ts";
export type { CgroupMemory } from "./cgroup-memory.ts";
export type { CpuInfo } from "./cpu-info.ts";
export type { CpuUse } from "./cpu-times.ts";
export type { CacheGroup, LogicalCpu } from "./cpu-topology.ts";
export { type FilesystemState, Host, type HostOptions, type InterfaceAddresses } from "./host.ts";
export { HostReadings, type HostReadingsOptions } from "./host-readings.ts";
export type { HostSample } from "./host-sampler.ts";
export type { MemoryState } from "./memory.ts";
export type { NetworkInterface } from "./network.ts";
export type { NumaNode } from "./numa.ts";
export { cpuBetween, type PodActivity, type PodCounters } from "./pod-activity.ts";
export type { PodGroup } from "./pod-cgroups.ts";
export {
  type AllocatableMemory,
  PodReadings,
  type PodReadingsOptions,
  type PodsState,
  type PodUse,
} from "./pod-readings.ts";
export type { Pressure, PressureResource, Stall } from "./pressure.ts";
export type { PidState } from "./processes.ts";
export { freshReading, mapReading, type Reading, readingProblem, readingValue } from "./reading.ts";
export type { NodeMemory } from "./zone-info.ts";
