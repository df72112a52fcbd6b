import type { Probe } from "./probe.ts";

/** `hybrid`: controllers on v1 hierarchies, with a v2 hierarchy beside them. */
export type CgroupVersion = "v1" | "hybrid" | "v2";

/** The release of the running kernel: "6.8.0-45-generic". */
export async function readKernelRelease(probe: Probe): Promise<string | undefined> {
  return (await probe.text("/proc/sys/kernel/osrelease")) || undefined;
}

/** Which cgroup hierarchy is mounted; undefined where none is. */
export async function readCgroupVersion(
  probe: Probe,
  root = "/sys/fs/cgroup",
): Promise<CgroupVersion | undefined> {
  if (probe.kernelText(`${root}/cgroup.controllers`) !== undefined) return "v2";
  if (probe.kernelText(`${root}/unified/cgroup.controllers`) !== undefined) return "hybrid";
  return probe.kernelNames(`${root}/memory`) === undefined ? undefined : "v1";
}

/** The resources that the kernel measures pressure (PSI) of; undefined where it measures none. */
export async function readPressureResources(probe: Probe): Promise<string[] | undefined> {
  const names = probe.kernelNames("/proc/pressure")?.sort();
  if (!names) return undefined;
  // A kernel started with psi=0 lists the files and refuses to read them.
  const readable = probe.optionalKernelText("/proc/pressure/memory");
  return readable === undefined ? undefined : names;
}
