import { type MemoryNames, memoryV1, memoryV2 } from "./cgroup-memory.ts";
import type { Probe } from "./probe.ts";

/** `hybrid`: controllers on v1 hierarchies, plus a v2 hierarchy at `unified`. */
export type CgroupVersion = "v1" | "hybrid" | "v2";

/** Location of the memory and pressure files of cgroups. Paths are relative to the host's root. */
export interface CgroupLayout {
  version: CgroupVersion;
  memoryRoot: string;
  /** Only cgroup v2 reports pressure; a v2 hierarchy mounted beside v1 controllers does too. */
  pressureRoot: string | undefined;
  memoryNames: MemoryNames;
}

/** Default mount point of cgroups. */
export const CGROUP_ROOT = "/sys/fs/cgroup";

/** Returns the version of the cgroup hierarchy mounted at `root`; undefined if there is none. */
export function readCgroupVersion(probe: Probe, root = CGROUP_ROOT): CgroupVersion | undefined {
  if (probe.kernelText(`${root}/cgroup.controllers`) !== undefined) return "v2";
  if (probe.kernelText(`${root}/unified/cgroup.controllers`) !== undefined) return "hybrid";
  return probe.kernelNames(`${root}/memory`) === undefined ? undefined : "v1";
}

/** Returns the layout of the hierarchies mounted at `root`; undefined if there is none. */
export function readCgroupLayout(probe: Probe, root: string): CgroupLayout | undefined {
  const version = readCgroupVersion(probe, root);
  if (version === undefined) return undefined;
  if (version === "v2") return { version, memoryRoot: root, pressureRoot: root, memoryNames: memoryV2 };
  const pressureRoot = version === "hybrid" ? `${root}/unified` : undefined;
  return { version, memoryRoot: `${root}/memory`, pressureRoot, memoryNames: memoryV1 };
}
