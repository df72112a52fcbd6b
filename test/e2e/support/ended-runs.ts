import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { removeCgroup } from "./cgroups.ts";

const execute = promisify(execFile);
const PREFIX = "nodekeeper-e2e-";
const OWNER = "owner";
// Where etcd has its data.
const memory = "/dev/shm";

/** Makes the directory of a cluster, which names this process as its owner; with KEEP_E2E=1 none, so that it is kept. */
export function makeRunDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), PREFIX));
  if (!process.env.KEEP_E2E) writeFileSync(join(directory, OWNER), stampOf(process.pid));
  return directory;
}

/**
 * Removes what clusters left whose test process was killed before it could stop them: processes, mounts, cgroups, directories.
 * Those of a process that runs are left alone, as are directories that name no owner.
 */
export async function removeEndedRuns(): Promise<void> {
  for (const name of namesIn(tmpdir()).filter((each) => each.startsWith(PREFIX))) {
    const directory = join(tmpdir(), name);
    const owner = read(join(directory, OWNER));
    if (owner === "" || owner === stampOf(Number(owner.split(" ")[0]))) continue;
    for (const pid of processesOf(name)) kill(pid);
    await removeCgroup(`/${name}-node`);
    for (const mount of mountsUnder(directory)) await execute("umount", ["--lazy", mount]).catch(() => {});
    for (const data of namesIn(memory).filter((each) => each.startsWith(`${name}-`)))
      rmSync(join(memory, data), { recursive: true, force: true });
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Mounts below a directory, innermost first. */
export function mountsUnder(directory: string): string[] {
  const points = read("/proc/self/mounts")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "");
  return points.filter((point) => point.startsWith(`${directory}/`)).reverse();
}

// All that is started for a cluster has a path with its directory's name among its arguments.
function processesOf(name: string): number[] {
  const pids = namesIn("/proc").filter((pid) => /^\d+$/.test(pid) && pid !== String(process.pid));
  return pids.filter((pid) => read(`/proc/${pid}/cmdline`).includes(name)).map(Number);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}

/** Returns the ID and start time of a process, which identify it even if the ID is reused. Empty if it has exited. */
function stampOf(pid: number): string {
  const stat = read(`/proc/${pid}/stat`);
  // proc_pid_stat(5): the second field may have spaces and brackets, the 22nd is the start.
  const startedAt = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return startedAt === undefined ? "" : `${pid} ${startedAt}`;
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
