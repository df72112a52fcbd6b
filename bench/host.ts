import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { Host, HostReadings, PodReadings, readingValue } from "../packages/agent/src/host/index.ts";
import type { Figure } from "./figures.ts";

const PODS = 110;
const CONTAINERS = 300;
const never = new AbortController().signal;

/** What it costs to read a machine with 110 pods and 300 containers, as all in-tree plugins together do each period. */
export async function benchHost(quick: boolean): Promise<Figure[]> {
  const rounds = quick ? 50 : 300;
  const figures: Figure[] = [];
  for (const version of ["v2", "v1"] as const) {
    const root = await mkdtemp(join(tmpdir(), "bench-host-"));
    try {
      await writeMachine(root, version);
      figures.push(...(await measure(root, version, rounds)));
    } finally {
      await rm(root, { recursive: true });
    }
  }
  return figures;
}

async function measure(root: string, version: string, rounds: number): Promise<Figure[]> {
  const host = new Host({ root });
  const pods = new PodReadings({ root });
  const full = () => {
    // New for each round: nothing is handed out twice.
    const readings = new HostReadings({ host, pods, clock: systemClock, maxAgeMs: () => 0 });
    return Promise.all([
      readings.memory(never),
      readings.nodeMemory(never),
      readings.cpu(never),
      readings.pids(never),
      readings.pressure("memory", never),
      readings.pressure("cpu", never),
      readings.pressure("io", never),
      readings.filesystem("/proc", never),
      readings.filesystem("/sys", never),
      readings.pods(never),
      readings.podActivity(never),
    ]);
  };
  const found = await full();
  const podCount = readingValue(found[9])?.pods.size;
  if (podCount !== PODS) throw new Error(`read ${podCount} pods`);
  const what = `cgroup ${version}, ${PODS} pods, ${CONTAINERS} containers`;
  return [
    { name: `full reading, ${what}`, value: await cpuOf(rounds, full), unit: "ms CPU", budget: 10 },
    { name: `of it pods, ${what}`, value: await cpuOf(rounds, () => pods.pods(never)), unit: "ms CPU" },
  ];
}

async function cpuOf(rounds: number, work: () => Promise<unknown>): Promise<number> {
  for (let round = 0; round < 20; round++) await work();
  const before = process.cpuUsage();
  for (let round = 0; round < rounds; round++) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / rounds;
}

/** A machine of two NUMA nodes; its files are as long as the kernel's. */
export async function writeMachine(root: string, version: "v1" | "v2"): Promise<void> {
  const write = async (path: string, text: string) => {
    await mkdir(join(root, path, ".."), { recursive: true });
    await writeFile(join(root, path), text);
  };
  const pressure =
    "some avg10=0.22 avg60=0.17 avg300=1.11 total=58761459\nfull avg10=0.22 avg60=0.16 avg300=1.08 total=58464525\n";
  await write(
    "proc/meminfo",
    lines(50, (n) => (["MemTotal", "MemFree", "MemAvailable"][n] ?? `Other${n}`).concat(":  98317364 kB")),
  );
  await write("proc/sys/vm/watermark_scale_factor", "10\n");
  await write("proc/sys/kernel/pid_max", "4194304\n");
  await write("proc/sys/kernel/threads-max", "767000\n");
  await write("proc/loadavg", "1.00 2.00 3.00 3/4000 12345\n");
  await write("proc/self/smaps", "0-1 r--p 0 0 0\nKernelPageSize:        4 kB\n");
  const cpu = (name: string) => `${name} 81291 0 20131 931000 102 0 3120 0 0 0`;
  await write("proc/stat", `${cpu("cpu ")}\n${lines(64, (n) => cpu(`cpu${n}`))}intr ${"0 ".repeat(2_000)}\n`);
  for (const resource of ["cpu", "io", "memory"]) await write(`proc/pressure/${resource}`, pressure);
  await write("proc/zoneinfo", [0, 1].map(zones).join(""));
  await write("sys/devices/system/node/online", "0-1\n");

  const base = version === "v2" ? "sys/fs/cgroup" : "sys/fs/cgroup/memory";
  if (version === "v2") await write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  const cgroup = async (path: string) => {
    for (const [name, text] of Object.entries(version === "v2" ? filesV2 : filesV1)) {
      await write(`${base}/${path}/${name}`, text);
    }
    if (version === "v2") await write(`${base}/${path}/memory.pressure`, pressure);
  };
  const group = "kubepods.slice/kubepods-burstable.slice";
  await cgroup("kubepods.slice");
  await cgroup(group);
  for (let pod = 0; pod < PODS; pod++) {
    const uid = `00000000_0000_4000_8000_${pod.toString(16).padStart(12, "0")}`;
    const path = `${group}/kubepods-burstable-pod${uid}.slice`;
    await cgroup(path);
    // The sandbox, and two or three containers.
    const containers =
      1 + Math.floor(((pod + 1) * CONTAINERS) / PODS) - Math.floor((pod * CONTAINERS) / PODS);
    for (let container = 0; container < containers; container++) {
      const id = (pod * 10 + container).toString(16).padStart(64, "0");
      await cgroup(`${path}/cri-containerd-${id}.scope`);
    }
  }
}

const filesV2 = {
  "memory.current": "1073741824\n",
  "memory.stat": `anon 536870912\nfile 268435456\n${lines(12, (n) => `kernel_part_${n} 123456`)}inactive_file 134217728\n${lines(34, (n) => `workingset_part_${n} 123456`)}`,
  "memory.numa_stat": lines(
    28,
    (n) => `${["anon", "file"][n] ?? `kernel_part_${n}`} N0=268435456 N1=268435456`,
  ),
};
const filesV1 = {
  "memory.usage_in_bytes": "1073741824\n",
  "memory.stat": `${lines(24, (n) => `part_${n} 123456`)}${lines(18, (n) => `${["total_rss", "total_inactive_file"][n] ?? `total_part_${n}`} 123456`)}`,
  "memory.numa_stat": lines(8, (n) => `${n === 4 ? "hierarchical_total" : `part_${n}`}=2000 N0=1000 N1=1000`),
};

function zones(node: number): string {
  const pageset = (cpu: number) =>
    `    cpu: ${cpu}\n              count:    17\n              high:     378\n              batch:    63\n  vm stats threshold: 4\n`;
  const zone = (name: string) =>
    `Node ${node}, zone ${name.padStart(8)}\n  pages free     100000\n        min      100\n        low      200\n        high     300\n` +
    `        managed  8000000\n${lines(60, (n) => `      ${n === 3 ? "nr_zone_inactive_file" : `nr_part_${n}`} 1000`)}  pagesets\n${Array.from({ length: 64 }, (_, cpu) => pageset(cpu)).join("")}`;
  return node === 0 ? zone("DMA") + zone("DMA32") + zone("Normal") : zone("Normal");
}

function lines(count: number, line: (n: number) => string): string {
  return Array.from({ length: count }, (_, n) => `${line(n)}\n`).join("");
}
