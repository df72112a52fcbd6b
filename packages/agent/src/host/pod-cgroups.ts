import type { KernelFiles } from "./kernel-files.ts";

/** A group that the kubelet makes for all pods, or for those of a QoS class. */
export type PodGroup = "all" | "burstable" | "besteffort";

/** The cgroups of pods on a machine. Paths are below the hierarchy's mount: "/kubepods/burstable/pod1". */
export interface PodCgroups {
  groups: ReadonlyMap<PodGroup, string>;
  /** By the UID that the kubelet knows the pod by: of static pods, not the one of the API server's mirror. */
  pods: ReadonlyMap<string, string>;
}

// The kubelet's --cgroup-root may put one group in between; kind does.
const parents = ["", "/kubelet", "/kubelet.slice"];
// More directories than this in one group are not read.
const MOST_PODS = 4096;
const MOST_CONTAINERS = 256;

/**
 * Finds the cgroups of pods by the names that the kubelet gives them, with either of its drivers: cgroupfs
 * ("kubepods/burstable/pod<UID>") and systemd ("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<UID
 * with _ for ->.slice").
 */
export function findPodCgroups(files: KernelFiles, root: string): PodCgroups {
  const groups = new Map<PodGroup, string>();
  const pods = new Map<string, string>();
  for (const parent of parents) {
    for (const name of files.names(root + parent) ?? []) {
      if (!/^(?:[\w.-]+-)?kubepods(?:\.slice)?$/.test(name) || groups.has("all")) continue;
      groups.set("all", `${parent}/${name}`);
    }
  }
  const all = groups.get("all");
  if (all === undefined) return { groups, pods };
  const inner = addPods(files, root, all, pods);
  for (const name of inner) {
    const group = /(?:^|-)(burstable|besteffort)(?:\.slice)?$/.exec(name)?.[1];
    if (group === undefined) continue;
    const path = `${all}/${name}`;
    groups.set(group as PodGroup, path);
    addPods(files, root, path, pods);
  }
  return { groups, pods };
}

/** The UID in the name of a pod's cgroup, or undefined for any other name. */
export function podUidOf(name: string): string | undefined {
  const slice = /^(?:[\w.-]+-)?kubepods-(?:burstable-|besteffort-)?pod(\w{1,128})\.slice$/.exec(name);
  if (slice) return slice[1]!.replaceAll("_", "-");
  return /^pod([\w-]{1,128})$/.exec(name)?.[1];
}

/**
 * The ID of the container whose cgroup has this name, or undefined for any other name: "<ID>",
 * "cri-containerd-<ID>.scope", "crio-<ID>.scope", "docker-<ID>.scope". CRI-O's monitors ("crio-conmon-<ID>.scope") are none.
 */
export function containerIdOf(name: string): string | undefined {
  if (name.startsWith("crio-conmon-")) return undefined;
  return /^(?:[a-z]+(?:-[a-z]+)*-)?([0-9a-f]{64})(?:\.scope)?$/.exec(name)?.[1];
}

// Gives the names that are no pods.
function addPods(files: KernelFiles, root: string, group: string, pods: Map<string, string>): string[] {
  const others: string[] = [];
  for (const name of files.names(root + group) ?? []) {
    const uid = podUidOf(name);
    if (uid === undefined) others.push(name);
    else if (pods.size < MOST_PODS) pods.set(uid, `${group}/${name}`);
  }
  return others;
}

/** Containers' cgroups by pod. A pod's directory is listed again only when the number of directories in it changed. */
export class ContainerCgroups {
  readonly #known = new Map<string, { count: number; containers: ReadonlyMap<string, string> }>();

  /** The containers in a pod's cgroup, sandbox included: path by ID. @param root the hierarchy's mount */
  of(files: KernelFiles, root: string, pod: string): ReadonlyMap<string, string> {
    const count = files.directoryCount(root + pod);
    const known = this.#known.get(pod);
    if (known && count !== undefined && known.count === count) return known.containers;
    const containers = new Map<string, string>();
    for (const name of files.names(root + pod) ?? []) {
      const id = containerIdOf(name);
      if (id !== undefined && containers.size < MOST_CONTAINERS) containers.set(id, `${pod}/${name}`);
    }
    if (count !== undefined) this.#known.set(pod, { count, containers });
    return containers;
  }

  /** Forgets a pod's containers, of which one was removed: as many may have been added. */
  forget(pod: string): void {
    this.#known.delete(pod);
  }

  /** Forgets the pods that are no more. */
  keep(pods: ReadonlySet<string>): void {
    for (const pod of this.#known.keys()) if (!pods.has(pod)) this.#known.delete(pod);
  }
}
