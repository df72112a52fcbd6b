export type { CpuInfo } from "./cpu-info.ts";
export type { CpuTopology, LogicalCpu } from "./cpu-topology.ts";
export { Host, type HostOptions, type InterfaceAddresses } from "./host.ts";
export type { CgroupVersion } from "./kernel.ts";
export type { InterfaceKind, NetworkInterface, NetworkOptions } from "./network.ts";
export type { NumaNode } from "./numa.ts";
export { type Reading, readingValue } from "./reading.ts";
export type { Virtualization } from "./virtualization.ts";
