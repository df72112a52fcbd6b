import { type Clock, systemClock, threadCpuMs } from "@nodekeeper/core/lib";
import { CGROUP_ROOT, type CgroupLayout, readCgroupLayout } from "./cgroup-layout.ts";
import { type CgroupMemory, cgroupMemoryOf } from "./cgroup-memory.ts";
import { HostFiles } from "./host-files.ts";
import type { KernelFiles } from "./kernel-files.ts";
import { PageSize } from "./page-size.ts";
import { type PodCounters, podCounters } from "./pod-activity.ts";
import { ContainerCgroups, findPodCgroups, type PodGroup } from "./pod-cgroups.ts";
import { type Pressure, type PressureResource, pressureAt } from "./pressure.ts";
import type { Probe } from "./probe.ts";
import type { Reading } from "./reading.ts";
import { inSlices } from "./slices.ts";
import { takeReading } from "./take-reading.ts";

/** What one pod uses, all its containers together. */
export interface PodUse {
  uid: string;
  /** Below the hierarchy's mount. */
  cgroup: string;
  memory: CgroupMemory;
  /** Undefined on cgroup v1, and where the kernel measures none. */
  memoryPressure: Pressure | undefined;
}

/** What the pods of the machine use. */
export interface PodsState {
  pods: ReadonlyMap<string, PodUse>;
  /** Memory pressure of the kubelet's groups, where the kernel measures it. */
  groupPressure: ReadonlyMap<PodGroup, Pressure>;
}

/** Memory of all pods together, bytes. */
export interface AllocatableMemory {
  limitBytes: number;
  /** Without page cache that was not used lately, as the kubelet counts it. */
  workingSetBytes: number;
}

export interface ContainerUse {
  id: string;
  podUid: string;
  cgroup: string;
  /** Without `nodeBytes`: those are read of pods alone. */
  memory: CgroupMemory;
}

export interface PodReadingsOptions {
  /** As of Host. Default "/". */
  root?: string;
  /** Where cgroups are mounted. Default "/sys/fs/cgroup". */
  cgroupRoot?: string;
  clock?: Clock;
  /** Milliseconds. Default 5000. */
  deadlineMs?: number;
}

/** Reads cgroups: those of pods, of their containers, and any other's pressure. No reading throws but for its signal. */
export class PodReadings {
  readonly #pageSize = new PageSize();
  readonly #containers = new ContainerCgroups();
  readonly #cgroupRoot: string;
  readonly #context: { files: HostFiles; clock: Clock; deadlineMs: number };

  constructor({ root = "/", ...options }: PodReadingsOptions = {}) {
    const { clock = systemClock, deadlineMs = 5_000 } = options;
    this.#cgroupRoot = (options.cgroupRoot ?? CGROUP_ROOT).replace(/\/+$/, "");
    this.#context = { files: new HostFiles(root), clock, deadlineMs };
  }

  /** All pods that have a cgroup; none is an answer too, on a machine without pods. */
  pods(signal?: AbortSignal): Promise<Reading<PodsState>> {
    return this.#read("memory of pods", (probe, layout, scoped) => this.#pods(probe, layout, scoped), signal);
  }

  /** Counters of CPU time and processes of all pods that have a cgroup, by UID. */
  counters(signal?: AbortSignal): Promise<Reading<ReadonlyMap<string, PodCounters>>> {
    return this.#read(
      "CPU time and processes of pods",
      async (probe, layout, scoped) => {
        const found = probe.attempt(() => findPodCgroups(this.#kernelFiles, layout.memoryRoot));
        if (found === undefined) return undefined;
        const counters = new Map<string, PodCounters>();
        const isV2 = layout.version === "v2";
        const slow = await inSlices(threadCpuMs, found.pods, scoped, ([uid, cgroup]) => {
          const read = probe.attempt(() => podCounters(this.#kernelFiles, this.#cgroupRoot, isV2, cgroup));
          if (read) counters.set(uid, read);
        });
        if (slow) probe.note(slow);
        return counters;
      },
      signal,
    );
  }

  /** Memory of the kubelet's group of all pods, whose limit is what the node lets pods use; undefined without a limit. */
  allocatableMemory(signal?: AbortSignal): Promise<Reading<AllocatableMemory>> {
    return this.#read(
      "memory of the kubelet's group of pods",
      async (probe, layout) => {
        const { memoryRoot, memoryNames } = layout;
        const group = probe.attempt(() => findPodCgroups(this.#kernelFiles, memoryRoot))?.groups.get("all");
        if (group === undefined) return undefined;
        const limitBytes = limitOf(probe.kernelText(`${memoryRoot}${group}/${memoryNames.limit}`));
        const { workingSetBytes } = this.#memoryOf(probe, layout, group, undefined);
        if (limitBytes === undefined || workingSetBytes === undefined) return undefined;
        return { limitBytes, workingSetBytes };
      },
      signal,
    );
  }

  /** All containers in pods, by ID, sandboxes included. */
  containers(signal?: AbortSignal): Promise<Reading<ReadonlyMap<string, ContainerUse>>> {
    return this.#read(
      "memory of containers",
      (probe, layout, scoped) => this.#containersOf(probe, layout, scoped),
      signal,
    );
  }

  /** Pressure on one cgroup. @param cgroup path below the mount: "/kubepods.slice" */
  pressure(cgroup: string, resource: PressureResource, signal?: AbortSignal): Promise<Reading<Pressure>> {
    return this.#read(
      `${resource} pressure of cgroup ${cgroup}`,
      async (probe, layout) => this.#pressureOf(probe, layout, cgroup, resource),
      signal,
    );
  }

  #read<T>(
    what: string,
    work: (probe: Probe, layout: CgroupLayout, signal: AbortSignal) => Promise<T | undefined>,
    signal?: AbortSignal,
  ): Promise<Reading<T>> {
    const ofLayout = async (probe: Probe, scoped: AbortSignal) => {
      const layout = await readCgroupLayout(probe, this.#cgroupRoot);
      return layout && (await work(probe, layout, scoped));
    };
    return takeReading(this.#context, what, ofLayout, signal);
  }

  get #kernelFiles(): KernelFiles {
    return this.#context.files.kernel;
  }

  async #pods(probe: Probe, layout: CgroupLayout, signal: AbortSignal): Promise<PodsState | undefined> {
    const found = probe.attempt(() => findPodCgroups(this.#kernelFiles, layout.memoryRoot));
    if (found === undefined) return undefined;
    const byNode = await this.#readsByNode(probe, layout);
    const groupPressure = new Map<PodGroup, Pressure>();
    for (const [group, path] of found.groups) {
      const pressure = this.#pressureOf(probe, layout, path, "memory");
      if (pressure) groupPressure.set(group, pressure);
    }
    const pods = new Map<string, PodUse>();
    const slow = await inSlices(threadCpuMs, found.pods, signal, ([uid, cgroup]) => {
      const memory = this.#memoryOf(probe, layout, cgroup, byNode);
      // Nothing of it is there: the pod has ended meanwhile.
      if (memory.usageBytes === undefined && memory.rssBytes === undefined) return;
      const memoryPressure = this.#pressureOf(probe, layout, cgroup, "memory");
      pods.set(uid, { uid, cgroup, memory, memoryPressure });
    });
    if (slow) probe.note(slow);
    return { pods, groupPressure };
  }

  async #containersOf(
    probe: Probe,
    layout: CgroupLayout,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, ContainerUse> | undefined> {
    const found = probe.attempt(() => findPodCgroups(this.#kernelFiles, layout.memoryRoot));
    if (found === undefined) return undefined;
    const containers = new Map<string, ContainerUse>();
    const slow = await inSlices(threadCpuMs, found.pods, signal, ([podUid, pod]) => {
      const inPod = probe.attempt(() => this.#containers.of(this.#kernelFiles, layout.memoryRoot, pod));
      for (const [id, cgroup] of inPod ?? []) {
        const memory = this.#memoryOf(probe, layout, cgroup, undefined);
        if (memory.usageBytes === undefined && memory.rssBytes === undefined) this.#containers.forget(pod);
        else containers.set(id, { id, podUid, cgroup, memory });
      }
    });
    if (slow) probe.note(slow);
    this.#containers.keep(new Set(found.pods.values()));
    return containers;
  }

  #memoryOf(
    probe: Probe,
    { memoryRoot, memoryNames }: CgroupLayout,
    cgroup: string,
    byNode: { pageSize: number | undefined } | undefined,
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

  #pressureOf(
    probe: Probe,
    { pressureRoot }: CgroupLayout,
    cgroup: string,
    resource: PressureResource,
  ): Pressure | undefined {
    if (pressureRoot === undefined) return undefined;
    return pressureAt(probe, `${pressureRoot}${cgroup}/${resource}.pressure`);
  }

  // On a machine of one node the sum of a pod is the node's: a file less for each pod.
  async #readsByNode(
    probe: Probe,
    { memoryNames }: CgroupLayout,
  ): Promise<{ pageSize: number | undefined } | undefined> {
    const nodes = probe.kernelCpuList("/sys/devices/system/node/online");
    if (nodes === undefined || nodes.length < 2) return undefined;
    return { pageSize: memoryNames.nodePages ? await this.#pageSize.read(probe) : undefined };
  }
}

// "max" on cgroup v2, and on v1 a number near 2^63: no limit.
function limitOf(text: string | undefined): number | undefined {
  const limit = text !== undefined && /^\d{1,19}$/.test(text) ? Number(text) : undefined;
  return limit !== undefined && limit < 2 ** 60 ? limit : undefined;
}
