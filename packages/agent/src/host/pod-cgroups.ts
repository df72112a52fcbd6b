import type { KernelFiles } from "./kernel-files.ts";

/** Cgroup that the kubelet creates for all pods or for the pods of a QoS class. */
export type PodGroup = "all" | "burstable" | "besteffort";

/** Cgroups of the pods on this machine. Paths are relative to the hierarchy's mount: "/kubepods/burstable/pod1". */
export interface PodCgroups {
  groups: ReadonlyMap<PodGroup, string>;
  /** Cgroup path by pod UID. For static pods, this is the UID that the kubelet uses, not that of the mirror pod. */
  pods: ReadonlyMap<string, string>;
}

// The kubelet's --cgroup-root may add a parent, as in kind.
const parents = ["", "/kubelet", "/kubelet.slice"];
// Maximum number of pods and of containers per pod.
const MOST_PODS = 4096;
const MOST_CONTAINERS = 256;

/**
 * Finds the cgroups of pods by the names that the kubelet's cgroup drivers give them: cgroupfs
 * ("kubepods/burstable/pod<UID>") and systemd
 * ("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<UID>.slice", with "-" in the UID replaced by "_").
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

/** Returns the UID in the name of a pod's cgroup; undefined for other names. */
export function podUidOf(name: string): string | undefined {
  const slice = /^(?:[\w.-]+-)?kubepods-(?:burstable-|besteffort-)?pod(\w{1,128})\.slice$/.exec(name);
  if (slice) return slice[1]!.replaceAll("_", "-");
  return /^pod([\w-]{1,128})$/.exec(name)?.[1];
}

/**
 * Returns the container ID in the name of a container's cgroup: "<ID>", "cri-containerd-<ID>.scope", "crio-<ID>.scope"
 * or "docker-<ID>.scope". Undefined for other names, including CRI-O's monitors ("crio-conmon-<ID>.scope").
 */
export function containerIdOf(name: string): string | undefined {
  if (name.startsWith("crio-conmon-")) return undefined;
  return /^(?:[a-z]+(?:-[a-z]+)*-)?([0-9a-f]{64})(?:\.scope)?$/.exec(name)?.[1];
}

// Returns the names that do not belong to pods.
function addPods(files: KernelFiles, root: string, group: string, pods: Map<string, string>): string[] {
  const others: string[] = [];
  for (const name of files.names(root + group) ?? []) {
    const uid = podUidOf(name);
    if (uid === undefined) others.push(name);
    else if (pods.size < MOST_PODS) pods.set(uid, `${group}/${name}`);
  }
  return others;
}

/**
 * Caches the containers' cgroups by pod. Lists a pod's directory again only if its number of subdirectories changed.
 */
export class ContainerCgroups {
  readonly #known = new Map<string, { count: number; containers: ReadonlyMap<string, string> }>();

  /**
   * Returns the containers of a pod, including its sandbox: cgroup path by ID. @param root mount point of the hierarchy
   */
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

  /** Drops a pod from the cache. Needed after a container was removed, because another may have replaced it. */
  forget(pod: string): void {
    this.#known.delete(pod);
  }

  /** Drops all other pods from the cache. */
  keep(pods: ReadonlySet<string>): void {
    for (const pod of this.#known.keys()) if (!pods.has(pod)) this.#known.delete(pod);
  }
}
