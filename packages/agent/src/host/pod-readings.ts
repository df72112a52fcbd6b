import { type Clock, systemClock, threadCpuMs } from "@nodekeeper/core/lib";
import { CGROUP_ROOT, type CgroupLayout, readCgroupLayout } from "./cgroup-layout.ts";
import { type CgroupMemory, cgroupMemoryOf } from "./cgroup-memory.ts";
import { HostFiles } from "./host-files.ts";
import type { KernelFiles } from "./kernel-files.ts";
import { PageSize } from "./memory.ts";
import { wholeNumber } from "./parse.ts";
import { type PodCounters, podCounters } from "./pod-activity.ts";
import { findPodCgroups, type PodCgroups, type PodGroup } from "./pod-cgroups.ts";
import { type Pressure, type PressureResource, pressureAt } from "./pressure.ts";
import type { Probe } from "./probe.ts";
import { type Reading, type ReadingContext, takeReading } from "./reading.ts";
import { inSlices } from "./slices.ts";

/** Memory usage of a pod, including all its containers. */
export interface PodUse {
  memory: CgroupMemory;
  /** Undefined on cgroup v1, and if the kernel does not report pressure. */
  memoryPressure: Pressure | undefined;
}

/** Memory usage of all pods, by UID. */
export interface PodsState {
  pods: ReadonlyMap<string, PodUse>;
  /** Memory pressure of the pod and QoS cgroups, if the kernel reports it. */
  groupPressure: ReadonlyMap<PodGroup, Pressure>;
}

/** Memory of all pods together, in bytes. */
export interface AllocatableMemory {
  limitBytes: number;
  /** Working set as the kubelet computes it: usage minus inactive page cache. */
  workingSetBytes: number;
}

export interface PodReadingsOptions {
  /** As in HostOptions. Default "/". */
  root?: string;
  /** Mount point of cgroups. Default "/sys/fs/cgroup". */
  cgroupRoot?: string;
  clock?: Clock;
}

/** A reading in progress on a machine with cgroups. */
interface Scope {
  probe: Probe;
  layout: CgroupLayout;
  signal: AbortSignal;
}

/**
 * Readings of cgroups: of pods, and the pressure of any cgroup. Readings throw only their signal's
 * reason.
 */
export class PodReadings {
  readonly #pageSize = new PageSize();
  readonly #cgroupRoot: string;
  readonly #context: ReadingContext;

  /** Pods that have a cgroup. Empty on machines without pods. */
  readonly pods = this.#podRow("memory of pods", (scope, found) => this.#pods(scope, found));
  /** CPU time and process count of each pod that has a cgroup, by UID. */
  readonly counters = this.#podRow("CPU time and processes of pods", (scope, found) =>
    this.#counters(scope, found),
  );
  /**
   * Memory of the parent cgroup of all pods, whose limit is the node's allocatable memory. `missing` without a limit.
   */
  readonly allocatableMemory = this.#podRow("memory of the kubelet's group of pods", (scope, { groups }) =>
    this.#allocatableMemory(scope, groups.get("all")),
  );
  constructor({ root = "/", ...options }: PodReadingsOptions = {}) {
    const { clock = systemClock } = options;
    this.#cgroupRoot = (options.cgroupRoot ?? CGROUP_ROOT).replace(/\/+$/, "");
    this.#context = { files: new HostFiles(root), clock };
  }

  /** Pressure of a cgroup. @param cgroup path relative to the mount: "/kubepods.slice" */
  pressure(cgroup: string, resource: PressureResource, signal?: AbortSignal): Promise<Reading<Pressure>> {
    return this.#row(`${resource} pressure of cgroup ${cgroup}`, (scope) =>
      pressureOf(scope, cgroup, resource),
    )(signal);
  }

  #row<T>(what: string, read: (scope: Scope) => T | undefined | Promise<T | undefined>) {
    return (signal?: AbortSignal): Promise<Reading<T>> =>
      takeReading(
        this.#context,
        what,
        async (probe, scoped) => {
          const layout = readCgroupLayout(probe, this.#cgroupRoot);
          return layout && (await read({ probe, layout, signal: scoped }));
        },
        signal,
      );
  }

  get #kernelFiles(): KernelFiles {
    return this.#context.files.kernel;
  }

  #podRow<T>(what: string, read: (scope: Scope, found: PodCgroups) => T | undefined | Promise<T>) {
    return this.#row(what, (scope) => {
      const { probe, layout } = scope;
      const found = probe.attempt(() => findPodCgroups(this.#kernelFiles, layout.memoryRoot));
      return found && read(scope, found);
    });
  }

  async #eachPod(
    { probe, signal }: Scope,
    { pods }: PodCgroups,
    work: (uid: string, cgroup: string) => void,
  ): Promise<void> {
    const tooSlow = await inSlices(threadCpuMs, pods, signal, ([uid, cgroup]) => work(uid, cgroup));
    if (tooSlow) probe.note(tooSlow);
  }

  async #pods(scope: Scope, found: PodCgroups): Promise<PodsState> {
    const byNode = await this.#readsByNode(scope);
    const groupPressure = new Map<PodGroup, Pressure>();
    for (const [group, path] of found.groups) {
      const pressure = pressureOf(scope, path, "memory");
      if (pressure) groupPressure.set(group, pressure);
    }
    const pods = new Map<string, PodUse>();
    await this.#eachPod(scope, found, (uid, cgroup) => {
      const memory = this.#memoryOf(scope, cgroup, byNode);
      // No memory file could be read: the pod terminated meanwhile.
      if (memory.usageBytes === undefined && memory.rssBytes === undefined) return;
      pods.set(uid, { memory, memoryPressure: pressureOf(scope, cgroup, "memory") });
    });
    return { pods, groupPressure };
  }

  async #counters(scope: Scope, found: PodCgroups): Promise<ReadonlyMap<string, PodCounters>> {
    const { probe, layout } = scope;
    const counters = new Map<string, PodCounters>();
    await this.#eachPod(scope, found, (uid, cgroup) => {
      const isV2 = layout.version === "v2";
      const read = probe.attempt(() => podCounters(this.#kernelFiles, this.#cgroupRoot, isV2, cgroup));
      if (read) counters.set(uid, read);
    });
    return counters;
  }

  #allocatableMemory(scope: Scope, group: string | undefined): AllocatableMemory | undefined {
    const { memoryRoot, memoryNames } = scope.layout;
    if (group === undefined) return undefined;
    const limitBytes = wholeNumber(scope.probe.kernelText(`${memoryRoot}${group}/${memoryNames.limit}`));
    const { workingSetBytes } = this.#memoryOf(scope, group);
    // Unlimited is "max" on cgroup v2 and a value close to 2^63 on v1.
    if (limitBytes === undefined || limitBytes >= 2 ** 60 || workingSetBytes === undefined) return undefined;
    return { limitBytes, workingSetBytes };
  }

  #memoryOf(
    { probe, layout: { memoryRoot, memoryNames } }: Scope,
    cgroup: string,
    byNode?: { pageSize: number | undefined },
  ): CgroupMemory {
    const text = (name: string) =>
      probe.attempt(() => this.#kernelFiles.text(`${memoryRoot}${cgroup}/${name}`));
    const texts = {
      usage: text(memoryNames.usage),
      stat: text("memory.stat"),
      nodes: byNode && text("memory.numa_stat"),
    };
    return cgroupMemoryOf(texts, memoryNames, byNode?.pageSize);
  }

  // Undefined on machines with one node, whose share is the pod's total: one file less per pod.
  async #readsByNode({ probe, layout }: Scope): Promise<{ pageSize: number | undefined } | undefined> {
    const nodes = probe.kernelCpuList("/sys/devices/system/node/online");
    if (nodes === undefined || nodes.length < 2) return undefined;
    return { pageSize: layout.memoryNames.nodePages ? await this.#pageSize.read(probe) : undefined };
  }
}

function pressureOf(
  { probe, layout: { pressureRoot } }: Scope,
  cgroup: string,
  resource: PressureResource,
): Pressure | undefined {
  return pressureRoot === undefined
    ? undefined
    : pressureAt(probe, `${pressureRoot}${cgroup}/${resource}.pressure`);
}
