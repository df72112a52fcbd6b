import { networkInterfaces } from "node:os";
import { type Clock, systemClock } from "@nodekeeper/core/lib";
import { readCgroupVersion } from "./cgroup-layout.ts";
import { readCpuInfo } from "./cpu-info.ts";
import { readCpuTimes } from "./cpu-times.ts";
import { readCacheGroups, readCpuTopology, readOnlineCpus } from "./cpu-topology.ts";
import { HostFiles } from "./host-files.ts";
import { type HostSample, HostSampler } from "./host-sampler.ts";
import { memoryState, PageSize, readMemoryTotal } from "./memory.ts";
import { readNetworkInterfaces } from "./network.ts";
import { readNumaNodes } from "./numa.ts";
import { machinePressure, type Pressure, type PressureResource, readPressureResources } from "./pressure.ts";
import type { Probe } from "./probe.ts";
import { type FoundProcess, findProcess, loadAverage, pidState } from "./processes.ts";
import { type Reading, type ReadingContext, takeReading } from "./reading.ts";
import { readVirtualization } from "./virtualization.ts";
import { readNodeMemory } from "./zone-info.ts";

export interface HostOptions {
  /** Parent directory of the host's /proc and /sys: "/", or "/host" in a container. Default "/". */
  root?: string;
  clock?: Clock;
}

export interface InterfaceAddresses {
  ipv4: string[];
  ipv6: string[];
}

/** State of the file system that contains a path. */
export interface FilesystemState {
  sizeBytes: number;
  /** Space available to unprivileged users, as the kubelet reports it. */
  availableBytes: number;
  /** 0 if the file system allocates inodes dynamically (btrfs). `inodesFree` is then meaningless. */
  inodes: number;
  inodesFree: number;
}

// Maximum number of addresses reported per interface.
const MAX_ADDRESSES = 64;

/**
 * Readings of the host from /proc and /sys. Readings throw only their signal's reason; failures are part of the
 * Reading. Only the page size and kernel settings of samples are cached. Callers that read often must cache constant
 * values.
 */
export class Host {
  readonly root: string;
  readonly #context: ReadingContext;
  readonly #pageSize = new PageSize();
  readonly #sampler: HostSampler;

  /** Processor model and flags. */
  readonly cpuInfo = this.#row("CPU model", readCpuInfo);
  /** Online CPUs only; much cheaper than the topology. */
  readonly onlineCpus = this.#row("online CPUs", readOnlineCpus);
  readonly cpuTopology = this.#row("CPU topology", readCpuTopology);
  /** Online CPUs grouped by L3 cache. */
  readonly cacheGroups = this.#row("L3 caches", readCacheGroups);
  /** Cumulative since boot. Usage is the difference of two readings. */
  readonly cpuTimes = this.#row("CPU times", readCpuTimes);
  readonly numaNodes = this.#row("NUMA nodes", readNumaNodes);
  /** In bytes. */
  readonly memoryTotal = this.#row("memory total", readMemoryTotal);
  readonly memory = this.#row("memory", (probe) => memoryState(probe));
  /** Memory by NUMA node, from the kernel's page allocator. */
  readonly nodeMemory = this.#row("memory of NUMA nodes", (probe) => readNodeMemory(probe, this.#pageSize));
  readonly pids = this.#row("process numbers", (probe) => pidState(probe));
  /** One-minute load average. */
  readonly loadAverage = this.#row("load average", loadAverage);
  readonly networkInterfaces = this.#row("network interfaces", readNetworkInterfaces);
  readonly virtualization = this.#row("virtualization", readVirtualization);
  readonly kernelRelease = this.#row(
    "kernel release",
    async (probe) => (await probe.text("/proc/sys/kernel/osrelease")) || undefined,
  );
  readonly cgroupVersion = this.#row("cgroup version", (probe) => readCgroupVersion(probe));
  /** Resources for which the kernel reports pressure stall information: cpu, io, memory, irq. */
  readonly pressureResources = this.#row("pressure stall information", readPressureResources);

  constructor(options: HostOptions = {}) {
    this.root = options.root ?? "/";
    const { clock = systemClock } = options;
    const files = new HostFiles(this.root);
    this.#context = { files, clock };
    this.#sampler = new HostSampler(files, this.#pageSize, clock);
  }

  /** Pressure of the whole host. */
  pressure(resource: PressureResource, signal?: AbortSignal): Promise<Reading<Pressure>> {
    return this.#row(`${resource} pressure`, (probe) => machinePressure(probe, resource))(signal);
  }

  /** Finds a process by name; `missing` if none runs or is visible. @param known PID at which it was last found */
  findProcess(name: string, known?: number, signal?: AbortSignal): Promise<Reading<FoundProcess>> {
    return this.#row(`process ${name}`, (probe) => findProcess(probe, name, known))(signal);
  }

  /** State of the file system that contains a host path. */
  filesystem(path: string, signal?: AbortSignal): Promise<Reading<FilesystemState>> {
    return this.#row(`file system of ${path}`, (probe) => readFilesystem(probe, path))(signal);
  }

  /** Returns the current state between rounds, read synchronously. */
  sample(): HostSample {
    return this.#sampler.sample();
  }

  /**
   * Returns addresses by interface, except loopback and link-local ones. Empty if the root is not "/", because they
   * would be the container's.
   */
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

  /** @param what name of the reading in messages */
  #row<T>(what: string, read: (probe: Probe) => T | undefined | Promise<T | undefined>) {
    return (signal?: AbortSignal): Promise<Reading<T>> =>
      takeReading(this.#context, what, async (probe) => await read(probe), signal);
  }
}

async function readFilesystem(probe: Probe, path: string): Promise<FilesystemState | undefined> {
  const stats = await probe.filesystem(path);
  if (stats === undefined) return undefined;
  const { bsize, blocks, bavail, files, ffree } = stats;
  return {
    sizeBytes: blocks * bsize,
    availableBytes: bavail * bsize,
    inodes: files,
    inodesFree: ffree,
  };
}

function isLinkLocal(address: string): boolean {
  return address.startsWith("169.254.") || /^fe[89ab]/i.test(address);
}
