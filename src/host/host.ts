import { networkInterfaces } from "node:os";
import { type Clock, codeOf, messageOf, NodekeeperError, systemClock, withDeadline } from "../lib/index.ts";
import { type CpuInfo, readCpuInfo } from "./cpu-info.ts";
import { type CpuTopology, readCpuTopology, readOnlineCpus } from "./cpu-topology.ts";
import { HostFiles } from "./host-files.ts";
import { type CgroupVersion, readCgroupVersion, readKernelRelease, readPressureResources } from "./kernel.ts";
import { readMemoryTotal } from "./memory.ts";
import { type NetworkInterface, type NetworkOptions, readNetworkInterfaces } from "./network.ts";
import { type NumaNode, readNumaNodes } from "./numa.ts";
import { Probe } from "./probe.ts";
import type { Reading } from "./reading.ts";
import { readVirtualization, type Virtualization } from "./virtualization.ts";

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

// More addresses of one interface than this help nobody who reads a report.
const MAX_ADDRESSES = 64;

/**
 * The machine as /proc and /sys tell it. No reading throws except when its signal aborts: what went wrong is in
 * the Reading. Nothing is kept; a caller that asks often keeps what can't change.
 */
export class Host {
  readonly root: string;
  readonly #files: HostFiles;
  readonly #clock: Clock;
  readonly #deadlineMs: number;

  constructor(options: HostOptions = {}) {
    this.root = options.root ?? "/";
    this.#files = new HostFiles(this.root);
    this.#clock = options.clock ?? systemClock;
    this.#deadlineMs = options.deadlineMs ?? 5_000;
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

  numaNodes(signal?: AbortSignal): Promise<Reading<NumaNode[]>> {
    return this.#read("NUMA nodes", readNumaNodes, signal);
  }

  /** Bytes. */
  memoryTotal(signal?: AbortSignal): Promise<Reading<number>> {
    return this.#read("memory total", readMemoryTotal, signal);
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

  async #read<T>(
    what: string,
    work: (probe: Probe) => Promise<T | undefined>,
    signal?: AbortSignal,
  ): Promise<Reading<T>> {
    const at = this.#clock.now();
    let problems: readonly NodekeeperError[] = [];
    try {
      const value = await withDeadline(this.#clock, this.#deadlineMs, `reading ${what}`, signal, (scoped) => {
        const probe = new Probe(this.#files, scoped);
        problems = probe.problems;
        return work(probe);
      });
      if (value !== undefined) return { state: "read", at, value, problems };
    } catch (thrown) {
      if (signal?.aborted) throw signal.reason;
      return { state: "failed", at, error: asNodekeeperError(thrown) };
    }
    const [problem] = problems;
    if (problem) return { state: "failed", at, error: problem };
    return { state: "missing", at, message: `${what}: the machine at ${this.root} does not tell` };
  }
}

function asNodekeeperError(thrown: unknown): NodekeeperError {
  if (thrown instanceof NodekeeperError) return thrown;
  return new NodekeeperError(codeOf(thrown), messageOf(thrown), { cause: thrown });
}

function isLinkLocal(address: string): boolean {
  return address.startsWith("169.254.") || /^fe[89ab]/i.test(address);
}
