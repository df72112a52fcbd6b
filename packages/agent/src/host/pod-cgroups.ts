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
const MOST_PODS = 4096;

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
