import type { NodekeeperError } from "@nodekeeper/core/lib";
import type {
  CpuInfo,
  Host,
  InterfaceAddresses,
  NetworkInterface,
  NumaNode,
  Reading,
} from "../host/index.ts";

/** Properties of the machine; undefined if unknown. */
export interface SystemFacts {
  cpu?: CpuInfo;
  onlineCpus?: readonly number[];
  numaNodes?: readonly NumaNode[];
  /** Memory in bytes. */
  memoryTotal?: number;
  interfaces?: readonly NetworkInterface[];
  addresses?: ReadonlyMap<string, InterfaceAddresses>;
  isVirtual?: boolean;
}

/** Reads the properties of the machine: constant ones once, others on each call. */
export class SystemFactsReader {
  readonly #host: Host;
  #known: SystemFacts = {};

  constructor(host: Host) {
    this.#host = host;
  }

  /**
   * Reads the properties that may have changed. If reading a property fails, its last value is kept and the error is
   * listed in `problems`. A property that the machine no longer has is dropped.
   */
  async read(signal?: AbortSignal): Promise<{ facts: SystemFacts; problems: NodekeeperError[] }> {
    const host = this.#host;
    const before = this.#known;
    const problems: NodekeeperError[] = [];
    const take = async <T>(reading: Promise<Reading<T>>, last: T | undefined): Promise<T | undefined> => {
      const read = await reading;
      if (read.state === "read") {
        problems.push(...read.problems);
        return read.value;
      }
      if (read.state !== "failed") return undefined;
      problems.push(read.error);
      return last;
    };

    const [cpu, isVirtual, onlineCpus, memoryTotal, interfaces] = await Promise.all([
      before.cpu ?? take(host.cpuInfo(signal), undefined),
      before.isVirtual ?? take(host.virtualization(signal), undefined),
      take(host.onlineCpus(signal), before.onlineCpus),
      take(host.memoryTotal(signal), before.memoryTotal),
      take(host.networkInterfaces(signal), before.interfaces),
    ]);
    const sameMachine =
      before.numaNodes && sameNumbers(onlineCpus, before.onlineCpus) && memoryTotal === before.memoryTotal;
    // NUMA nodes change only with hotplug of CPUs or memory, and those are cheaper to read.
    const numaNodes = sameMachine ? before.numaNodes : await take(host.numaNodes(signal), before.numaNodes);
    this.#known = withoutAbsent({
      cpu,
      isVirtual,
      onlineCpus,
      memoryTotal,
      interfaces,
      numaNodes,
      addresses: host.addresses(),
    });
    return { facts: this.#known, problems };
  }
}

function sameNumbers(a: readonly number[] | undefined, b: readonly number[] | undefined): boolean {
  return a?.length === b?.length && (a ?? []).every((value, at) => value === b?.[at]);
}

function withoutAbsent(facts: { [name in keyof SystemFacts]: SystemFacts[name] | undefined }): SystemFacts {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as SystemFacts;
}
