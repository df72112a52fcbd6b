import { type MemoryNames, memoryV1, memoryV2 } from "./cgroup-memory.ts";
import { type CgroupVersion, readCgroupVersion } from "./kernel.ts";
import type { Probe } from "./probe.ts";

/** Where a machine has the cgroups' files of memory and pressure. Paths are the machine's, below its root. */
export interface CgroupLayout {
  version: CgroupVersion;
  memoryRoot: string;
  /** Only cgroup v2 measures pressure: also where v1 has the controllers, if v2 is mounted beside it. */
  pressureRoot: string | undefined;
  memoryNames: MemoryNames;
}

/** Where cgroups are mounted unless the machine is configured otherwise. */
export const CGROUP_ROOT = "/sys/fs/cgroup";

/** Looks which hierarchies are mounted at `root`; undefined where none is. */
export async function readCgroupLayout(probe: Probe, root: string): Promise<CgroupLayout | undefined> {
  const version = await readCgroupVersion(probe, root);
  if (version === undefined) return undefined;
  if (version === "v2") return { version, memoryRoot: root, pressureRoot: root, memoryNames: memoryV2 };
  const pressureRoot = version === "hybrid" ? `${root}/unified` : undefined;
  return { version, memoryRoot: `${root}/memory`, pressureRoot, memoryNames: memoryV1 };
}
