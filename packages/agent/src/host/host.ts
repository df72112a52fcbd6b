import { networkInterfaces } from "node:os";
import { type Clock, systemClock } from "@nodekeeper/core/lib";
import { type CacheGroup, readCacheGroups } from "./cache-groups.ts";
import { type CpuInfo, readCpuInfo } from "./cpu-info.ts";
import { type CpuTimes, readCpuTimes } from "./cpu-times.ts";
import { type CpuTopology, readCpuTopology, readOnlineCpus } from "./cpu-topology.ts";
import { type FilesystemState, readFilesystem } from "./filesystem.ts";
import { HostFiles } from "./host-files.ts";
import { type HostSample, HostSampler } from "./host-sampler.ts";
import { type CgroupVersion, readCgroupVersion, readKernelRelease, readPressureResources } from "./kernel.ts";
import { type MemoryState, memoryState, readMemoryTotal } from "./memory.ts";
import { type NetworkInterface, type NetworkOptions, readNetworkInterfaces } from "./network.ts";
import { type NumaNode, readNumaNodes } from "./numa.ts";
import { PageSize } from "./page-size.ts";
import { loadAverage, type PidState, pidState } from "./pids.ts";
import { machinePressure, type Pressure, type PressureResource } from "./pressure.ts";
import type { Probe } from "./probe.ts";
import { type FoundProcess, findProcess } from "./processes.ts";
import type { Reading } from "./reading.ts";
import { type ReadingContext, takeReading } from "./take-reading.ts";
import { readVirtualization, type Virtualization } from "./virtualization.ts";
import { type NodeMemory, readNodeMemory } from "./zone-info.ts";

export interface HostOptions {
  /** Where the machine's /proc and /sys are: "/", or "/host" in a container. Default "/". */
  root?: string;
  clock?: Clock;
  /** The longest a reading may take, milliseconds. Default 5000. */
  deadlineMs?: number;
}

export interface InterfaceAddresses {
  ipv4: string[];
  ipv6: string[];
}

// More addresses of one interface than this are of no use in a report.
const MAX_ADDRESSES = 64;

/**
 * The machine as /proc and /sys report it. No reading throws except when its signal aborts: failures are in
 * the Reading. Nothing is kept but the size of a page; a caller that asks often keeps what can't change.
 */
export class Host {
  readonly root: string;
  readonly #context: ReadingContext;
  readonly #pageSize = new PageSize();
  readonly #sampler: HostSampler;

  constructor(options: HostOptions = {}) {
    this.root = options.root ?? "/";
    const { clock = systemClock, deadlineMs = 5_000 } = options;
    const files = new HostFiles(this.root);
    this.#context = { files, clock, deadlineMs };
    this.#sampler = new HostSampler(files, this.#pageSize, clock);
  }

  /** Processor model and flags. */
  cpuInfo(signal?: AbortSignal): Promise<Reading<CpuInfo>> {
    return this.#read("CPU model", readCpuInfo, signal);
  }

  /** Online CPUs alone; much cheaper than the topology. */
  onlineCpus(signal?: AbortSignal): Promise<Reading<number[]>> {
    return this.#read("online CPUs", readOnlineCpus, signal);
  }

  cpuTopology(signal?: AbortSignal): Promise<Reading<CpuTopology>> {
    return this.#read("CPU topology", readCpuTopology, signal);
  }

  /** A process by its name; `known` is the number that it had before. Absent where none runs or can be seen. */
  findProcess(name: string, known?: number, signal?: AbortSignal): Promise<Reading<FoundProcess>> {
    return this.#read(`process ${name}`, (probe) => findProcess(probe, name, known), signal);
  }

  /** CPUs by L3 cache. */
  cacheGroups(signal?: AbortSignal): Promise<Reading<CacheGroup[]>> {
    return this.#read("L3 caches", readCacheGroups, signal);
  }

  numaNodes(signal?: AbortSignal): Promise<Reading<NumaNode[]>> {
    return this.#read("NUMA nodes", readNumaNodes, signal);
  }

  /** Bytes. */
  memoryTotal(signal?: AbortSignal): Promise<Reading<number>> {
    return this.#read("memory total", readMemoryTotal, signal);
  }

  memory(signal?: AbortSignal): Promise<Reading<MemoryState>> {
    return this.#read("memory", async (probe) => memoryState(probe), signal);
  }

  /** Memory by NUMA node, as the kernel's page allocator sees it. */
  nodeMemory(signal?: AbortSignal): Promise<Reading<NodeMemory[]>> {
    return this.#read("memory of NUMA nodes", (probe) => readNodeMemory(probe, this.#pageSize), signal);
  }

  /** Pressure on the whole machine. */
  pressure(resource: PressureResource, signal?: AbortSignal): Promise<Reading<Pressure>> {
    return this.#read(`${resource} pressure`, async (probe) => machinePressure(probe, resource), signal);
  }

  /** Counters since boot: the use is the difference of two of them. */
  cpuTimes(signal?: AbortSignal): Promise<Reading<CpuTimes>> {
    return this.#read("CPU times", readCpuTimes, signal);
  }

  pids(signal?: AbortSignal): Promise<Reading<PidState>> {
    return this.#read("process numbers", async (probe) => pidState(probe), signal);
  }

  /** Tasks that ran or waited to run, the mean of the last minute. */
  loadAverage(signal?: AbortSignal): Promise<Reading<number>> {
    return this.#read("load average", async (probe) => loadAverage(probe), signal);
  }

  /** What the kernel reports now, read on this thread at each call. */
  sample(): HostSample {
    return this.#sampler.sample();
  }

  /** The file system that holds a path of the machine. */
  filesystem(path: string, signal?: AbortSignal): Promise<Reading<FilesystemState>> {
    return this.#read(`file system of ${path}`, (probe) => readFilesystem(probe, path), signal);
  }

  networkInterfaces(options?: NetworkOptions, signal?: AbortSignal): Promise<Reading<NetworkInterface[]>> {
    return this.#read("network interfaces", (probe) => readNetworkInterfaces(probe, options), signal);
  }

  virtualization(signal?: AbortSignal): Promise<Reading<Virtualization>> {
    return this.#read("virtualization", readVirtualization, signal);
  }

  kernelRelease(signal?: AbortSignal): Promise<Reading<string>> {
    return this.#read("kernel release", readKernelRelease, signal);
  }

  cgroupVersion(signal?: AbortSignal): Promise<Reading<CgroupVersion>> {
    return this.#read("cgroup version", readCgroupVersion, signal);
  }

  /** Resources with pressure stall information: cpu, io, memory, irq. */
  pressureResources(signal?: AbortSignal): Promise<Reading<string[]>> {
    return this.#read("pressure stall information", readPressureResources, signal);
  }

  /** Addresses by interface, loopback and link-local ones left out. Empty under another root: they would not be the machine's. */
  addresses(): ReadonlyMap<string, InterfaceAddresses> {
    const found = new Map<string, InterfaceAddresses>();
    if (this.root !== "/") return found;
    for (const [name, entries = []] of Object.entries(networkInterfaces())) {
      const routable = entries.filter((entry) => !entry.internal && !isLinkLocal(entry.address));
      const of = (family: string) =>
        routable
          .filter((entry) => entry.family === family)
          .map((entry) => entry.address)
          .sort()
          .slice(0, MAX_ADDRESSES);
      if (routable.length > 0) found.set(name, { ipv4: of("IPv4"), ipv6: of("IPv6") });
    }
    return found;
  }

  #read<T>(
    what: string,
    work: (probe: Probe) => Promise<T | undefined>,
    signal?: AbortSignal,
  ): Promise<Reading<T>> {
    return takeReading(this.#context, what, (probe) => work(probe), signal);
  }
}

function isLinkLocal(address: string): boolean {
  return address.startsWith("169.254.") || /^fe[89ab]/i.test(address);
}
