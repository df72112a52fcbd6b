import type {
  AllocatableResourcesResponse,
  ContainerDevices,
  ContainerMemory,
  DynamicResource,
  ListPodResourcesResponse,
  TopologyInfo,
} from "@nodekeeper/core/gen/podresources/v1/api.ts";

/** Devices of one resource that are placed alike. */
export interface Devices {
  readonly resource: string;
  readonly ids: readonly string[];
  /** NUMA nodes they are near to; empty where the device plugin did not say. */
  readonly nodes: readonly number[];
}

/** Memory of one type on one NUMA node, or on several of which it is not told how much is where. */
export interface MemoryBlock {
  /** "memory", or "hugepages-2Mi" and the like: also the name of the resource. */
  readonly type: string;
  readonly bytes: bigint;
  readonly nodes: readonly number[];
}

/** What is given out, or could be. */
export interface Resources {
  readonly devices: readonly Devices[];
  /** Numbers of CPUs. */
  readonly cpus: readonly number[];
  readonly memory: readonly MemoryBlock[];
}

/** A device of a DRA driver that is allocated for a claim. Before Kubernetes 1.31 the kubelet leaves its names empty. */
export interface ClaimedDevice {
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
}

/** What all containers of one pod hold. */
export interface PodHolding extends Resources {
  readonly namespace: string;
  readonly name: string;
  /** The devices of the claims that its containers refer to; one that several refer to is there for each. */
  readonly claimed: readonly ClaimedDevice[];
}

/** What the kubelet says of one moment; the two halves are read one after the other. */
export interface KubeletAnswer {
  /** CPUs and memory are empty where the kubelet does not manage them by NUMA node. */
  readonly allocatable: Resources;
  readonly pods: readonly PodHolding[];
}

/** Turns the kubelet's messages into the answer they mean. */
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
