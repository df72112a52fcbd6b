import type {
  AllocatableResourcesResponse,
  ContainerDevices,
  ContainerMemory,
  DynamicResource,
  ListPodResourcesResponse,
  TopologyInfo,
} from "@nodekeeper/core/gen/podresources/v1/api.ts";

/** Devices of one resource with the same NUMA affinity. */
export interface Devices {
  readonly resource: string;
  readonly ids: readonly string[];
  /** NUMA nodes with affinity; empty if the device plugin reported none. */
  readonly nodes: readonly number[];
}

/** Memory of one type on one NUMA node, or on several with an unknown distribution. */
export interface MemoryBlock {
  /** Resource name: "memory", or for example "hugepages-2Mi". */
  readonly type: string;
  readonly bytes: bigint;
  readonly nodes: readonly number[];
}

/** Allocatable or allocated resources. */
export interface Resources {
  readonly devices: readonly Devices[];
  /** CPU IDs. */
  readonly cpus: readonly number[];
  readonly memory: readonly MemoryBlock[];
}

/** A DRA device allocated for a claim. Kubelets before Kubernetes 1.31 leave its names empty. */
export interface ClaimedDevice {
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
}

/** The resources allocated to all containers of one pod. */
export interface PodHolding extends Resources {
  readonly namespace: string;
  readonly name: string;
  /** Devices of the claims that its containers reference, repeated for each reference. */
  readonly claimed: readonly ClaimedDevice[];
}

/** The kubelet's responses to List and GetAllocatableResources, which are called sequentially. */
export interface KubeletAnswer {
  /** CPUs and memory are empty if the kubelet's CPU manager and memory manager policies are not static. */
  readonly allocatable: Resources;
  readonly pods: readonly PodHolding[];
}

/** Converts the kubelet's messages. */
export function kubeletAnswer(
  allocatable: AllocatableResourcesResponse,
  list: ListPodResourcesResponse,
): KubeletAnswer {
  return {
    allocatable: resourcesOf([allocatable]),
    pods: list.podResources.map(({ namespace, name, containers }) => ({
      namespace,
      name,
      ...resourcesOf(containers),
      claimed: containers.flatMap(({ dynamicResources }) => dynamicResources.flatMap(claimedDevices)),
    })),
  };
}

interface Holder {
  devices: ContainerDevices[];
  cpuIds: bigint[];
  memory: ContainerMemory[];
}

function resourcesOf(holders: readonly Holder[]): Resources {
  return {
    devices: holders.flatMap(({ devices }) =>
      devices.map(({ resourceName, deviceIds, topology }) => ({
        resource: resourceName,
        ids: deviceIds,
        nodes: nodesOf(topology),
      })),
    ),
    cpus: holders.flatMap(({ cpuIds }) => cpuIds.map(Number)),
    memory: holders.flatMap(({ memory }) =>
      memory.map(({ memoryType, size, topology }) => ({
        type: memoryType,
        bytes: size,
        nodes: nodesOf(topology),
      })),
    ),
  };
}

function claimedDevices({ claimResources }: DynamicResource): ClaimedDevice[] {
  return claimResources.map(({ driverName, poolName, deviceName }) => ({
    driver: driverName,
    pool: poolName,
    device: deviceName,
  }));
}

function nodesOf(topology: TopologyInfo | undefined): number[] {
  return [...new Set(topology?.nodes.map(({ ID }) => Number(ID)))].sort((a, b) => a - b);
}
