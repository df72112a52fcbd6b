import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";

const MOUNT = "/sys/fs/cgroup";

/** The mounted hierarchies by the names of their folders: some for the controllers of cgroup v1, or "" for v2 alone. */
export function cgroupHierarchies(): string[] {
  if (existsSync(join(MOUNT, "cgroup.controllers"))) return [""];
  // A folder in which nothing is mounted is another program's business.
  return readdirSync(MOUNT, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && existsSync(join(MOUNT, entry.name, "cgroup.procs")) ? [entry.name] : [],
  );
}

/** Makes a cgroup such as "/e2e-1" in every hierarchy, with all that its parent may use. */
export function makeCgroup(path: string): void {
  for (const hierarchy of cgroupHierarchies()) {
    const root = join(MOUNT, hierarchy);
    const folder = join(root, path);
    mkdirSync(folder, { recursive: true });
    if (hierarchy === "") giveControllers(root);
    // In v1 a cgroup begins without a CPU, and takes no process.
    if (hierarchy !== "cpuset") continue;
    for (const file of ["cpuset.cpus", "cpuset.mems"])
      writeFileSync(join(folder, file), readFileSync(join(root, file)));
  }
}

/** Gives a cgroup of pods as much weight as the kubelet gives its own: a whole CPU's for each of the machine. */
export function weighAsPods(path: string): void {
  const shares = 1024 * availableParallelism();
  for (const hierarchy of cgroupHierarchies()) {
    const folder = join(MOUNT, hierarchy, path);
    if (hierarchy === "")
      writeFileSync(join(folder, "cpu.weight"), `${Math.min(10_000, (shares * 100) / 1024)}`);
    else if (existsSync(join(folder, "cpu.shares"))) writeFileSync(join(folder, "cpu.shares"), `${shares}`);
  }
}

/** Removes a cgroup and all below it from every hierarchy, killing what runs there; waits until it is removed. */
export async function removeCgroup(path: string): Promise<void> {
  const folders = cgroupHierarchies().map((hierarchy) => join(MOUNT, hierarchy, path));
  await until(`the removal of cgroup ${path}`, () => {
    for (const folder of folders) removeTree(folder);
    return folders.every((folder) => !existsSync(folder));
  });
}

// Its children have the controllers that it says here.
function giveControllers(folder: string): void {
  const controllers = readFileSync(join(folder, "cgroup.controllers"), "utf8").split(/\s+/).filter(Boolean);
  for (const name of controllers) {
    try {
      writeFileSync(join(folder, "cgroup.subtree_control"), `+${name}`);
    } catch {
      // One that the machine uses in another way.
    }
  }
}

// Folders alone: what the kernel shows in them goes with them.
function removeTree(folder: string): void {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory()) removeTree(join(folder, entry.name));
    }
    for (const pid of readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean)) {
      process.kill(Number(pid), "SIGKILL");
    }
    rmdirSync(folder);
  } catch {
    // Not there, or a process still ends in it.
  }
}
