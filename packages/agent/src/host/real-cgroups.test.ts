import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmdirSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PodReadings, readingValue } from "./index.ts";

const Mi = 2 ** 20;
const mount = "/sys/fs/cgroup";
const own = `nodekeeper-test-${process.pid}`;
const uid = "0f1e2d3c-0000-4000-8000-00000000000a";
const id = "ab".repeat(32);
const pod = `kubepods/burstable/pod${uid}`;

// Creating cgroups requires root and, on v2, the memory controller for children of the root cgroup.
function memoryMount(): string | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if (existsSync(`${mount}/memory/cgroup.procs`)) return `${mount}/memory`;
  const enabled = `${mount}/cgroup.subtree_control`;
  return existsSync(enabled) && readFileSync(enabled, "utf8").includes("memory") ? mount : undefined;
}

function makeCgroup(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch {
    return false;
  }
}

// The kernel releases the cgroup of an exited process shortly after its parent is notified.
async function removeCgroup(path: string): Promise<void> {
  await eventually(() => rmdirSync(path));
}

const memory = memoryMount();
const isPossible = memory !== undefined && makeCgroup(join(memory, own));

// A process in a real cgroup, to verify that the kernel's files match the fixtures.
describe.runIf(isPossible)("real cgroups", () => {
  const isV2 = memory === mount;
  const made = [join(memory ?? "", own)];
  let root: string;
  let child: ChildProcess;

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "cgroups-"));
    const base = made[0]!;
    let path = base;
    for (const part of ["", ...pod.split("/"), id]) {
      path = join(path, part);
      if (path !== base) {
        mkdirSync(path);
        made.push(path);
      }
      if (isV2 && part !== id) writeFileSync(join(path, "cgroup.subtree_control"), "+memory");
    }
    if (isV2) symlinkSync(base, join(root, "cgroup"));
    else {
      mkdirSync(join(root, "cgroup"));
      symlinkSync(base, join(root, "cgroup/memory"));
    }
    // Moves before it allocates, because memory is charged to the cgroup that first touches it.
    const program = `
      require("node:fs").writeFileSync(process.argv[1], String(process.pid));
      globalThis.held = Buffer.alloc(64 * 1024 * 1024, 7);
      process.stdout.write("ready");
      setInterval(() => {}, 1000);`;
    child = spawn(process.execPath, ["-e", program, join(path, "cgroup.procs")]);
    await once(child.stdout!, "data");
  });

  afterAll(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    for (const path of made.reverse()) await removeCgroup(path);
    await rm(root, { recursive: true });
  });

  it("report the memory of a pod", async () => {
    const pods = new PodReadings({ root, cgroupRoot: "/cgroup", clock: systemClock });
    const state = readingValue(await pods.pods());
    const use = state?.pods.get(uid);
    expect(use?.memory.rssBytes).toBeGreaterThan(64 * Mi);
    expect(use?.memory.rssBytes).toBeLessThan(200 * Mi);
    expect(use?.memory.usageBytes).toBeGreaterThanOrEqual(use!.memory.workingSetBytes!);
    expect(use?.memory.workingSetBytes).toBeGreaterThan(64 * Mi);
  });
});
