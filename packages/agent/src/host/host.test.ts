import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { FakeClock } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import type { MachineTree } from "../../../../test/fixtures/machines.ts";
import {
  armMachine,
  machineOfTest,
  machineTree,
  twoSockets,
  virtualMachine,
} from "../../../../test/fixtures/machines.ts";
import { Host, readingValue } from "./index.ts";

async function hostOf(tree: MachineTree): Promise<{ host: Host; root: string }> {
  const root = await machineOfTest(tree);
  return { host: new Host({ root, clock: new FakeClock(1_000) }), root };
}

const empty: MachineTree = { files: {}, links: {} };

describe("a machine of two sockets", () => {
  it("reads CPUs, sockets and threads, without the offline ones", async () => {
    const { host } = await hostOf(machineTree(twoSockets));
    const topology = readingValue(await host.cpuTopology());
    expect(topology).toHaveLength(14);
    expect(topology?.[5]).toEqual({ id: 5, socket: 1, threads: [5, 13] });
  });

  it("reads NUMA nodes, also the one without memory", async () => {
    const { host } = await hostOf(machineTree(twoSockets));
    expect(readingValue(await host.numaNodes())).toEqual([
      { id: 0, cpus: [0, 1, 2, 3, 8, 9, 10, 11], memoryBytes: 131_072_000 * 1024 },
      { id: 1, cpus: [4, 5, 6, 7, 12, 13], memoryBytes: 0 },
    ]);
  });

  it("reads cards and bonds, but no software interfaces", async () => {
    const { host } = await hostOf(machineTree(twoSockets));
    const found = readingValue(await host.networkInterfaces());
    expect(found?.map((each) => [each.name, each.speedMbps, each.numaNode])).toEqual([
      ["bond0", 50_000, undefined],
      ["eth0", 25_000, 0],
      ["eth1", 25_000, 1],
      ["eth2", 100_000, 1],
    ]);
    expect(found?.[1]).toMatchObject({
      pciAddress: "0000:3b:00.0",
      operationalState: "up",
      index: 2,
    });
  });

  it("is not virtual", async () => {
    const { host } = await hostOf(machineTree(twoSockets));
    expect(readingValue(await host.virtualization())).toBe(false);
  });
});

describe("virtual machines", () => {
  it("without NUMA are one node of everything", async () => {
    const { host } = await hostOf(machineTree(virtualMachine));
    expect(readingValue(await host.numaNodes())).toEqual([
      { id: 0, cpus: [0, 1], memoryBytes: 4_015_032 * 1024 },
    ]);
  });

  it("have cards of unknown speed and node", async () => {
    const { host } = await hostOf(machineTree(virtualMachine));
    const [card] = readingValue(await host.networkInterfaces()) ?? [];
    expect(card).toMatchObject({ name: "ens4", pciAddress: "0000:00:04.0" });
    expect(card).not.toHaveProperty("speedMbps");
    expect(card).not.toHaveProperty("numaNode");
  });

  it("have the NUMA node of the PCI device behind a virtio card", async () => {
    const nics = [{ name: "ens4", pci: "0000:00:04.0", virtio: true, numaNode: "1" }];
    const { host } = await hostOf(machineTree({ ...virtualMachine, nics }));
    expect(readingValue(await host.networkInterfaces())?.[0]?.numaNode).toBe(1);
  });

  it.each([
    ["x86 flag", virtualMachine, undefined, true],
    ["arm64 firmware", armMachine, undefined, true],
    ["EC2 metal", armMachine, { vendor: "Amazon EC2", product: "m6g.metal" }, false],
    ["arm64 server", armMachine, { vendor: "HPE", product: "ProLiant RL300" }, false],
  ])("are recognized by %s", async (_, machine, dmi, expected) => {
    const { host } = await hostOf(machineTree({ ...machine, ...(dmi ? { dmi } : {}) }));
    expect(readingValue(await host.virtualization())).toBe(expected);
  });

  it("are not guessed where nothing reports them", async () => {
    const tree = machineTree(armMachine);
    delete tree.files["/sys/class/dmi/id/sys_vendor"];
    delete tree.files["/sys/class/dmi/id/product_name"];
    const { host } = await hostOf(tree);
    expect((await host.virtualization()).state).toBe("missing");
  });
});

describe("speeds", () => {
  it.each(["-1", "0", "4294967295", "65535", "fast", ""])("%j is unknown", async (speed) => {
    const nics = [{ name: "eth0", pci: "0000:00:03.0", speed }];
    const { host } = await hostOf(machineTree({ ...virtualMachine, nics }));
    const reading = await host.networkInterfaces();
    expect(readingValue(reading)?.[0]).not.toHaveProperty("speedMbps");
    expect(reading).toMatchObject({ problems: [] });
  });

  it("that can't be read are unknown, and the rest of the card is read", async () => {
    const { host, root } = await hostOf(machineTree(virtualMachine));
    const speed = join(root, "/sys/class/net/ens4/speed");
    await rm(speed);
    await mkdir(speed);
    expect(readingValue(await host.networkInterfaces())?.[0]).toMatchObject({ name: "ens4", index: 2 });
  });
});

describe("what is not there", () => {
  it("is missing, never zero", async () => {
    const { host } = await hostOf(empty);
    const readings = await Promise.all([
      host.cpuInfo(),
      host.cpuTopology(),
      host.onlineCpus(),
      host.numaNodes(),
      host.memoryTotal(),
      host.networkInterfaces(),
      host.virtualization(),
      host.kernelRelease(),
      host.cgroupVersion(),
      host.pressureResources(),
    ]);
    for (const reading of readings) expect(reading).toMatchObject({ state: "missing", at: 0 });
  });

  it("leaves the CPU count to cpuinfo where sysfs has none", async () => {
    const tree = machineTree(virtualMachine);
    delete tree.files["/sys/devices/system/cpu/online"];
    const { host } = await hostOf(tree);
    expect(readingValue(await host.onlineCpus())).toEqual([0, 1]);
  });
});

describe("what can't be read", () => {
  it("fails with the place and the reason", async () => {
    const { host, root } = await hostOf(empty);
    await mkdir(join(root, "proc/meminfo"), { recursive: true });
    const reading = await host.memoryTotal();
    expect(reading).toMatchObject({ state: "failed", error: { code: "unavailable" } });
    expect(reading.state === "failed" && reading.error.message).toContain(`${root}/proc/meminfo`);
  });

  it("fails when it is longer than a file of its kind can be", async () => {
    const { host, root } = await hostOf(machineTree(virtualMachine));
    await writeFile(join(root, "proc/meminfo"), "x".repeat(100_000));
    expect(await host.memoryTotal()).toMatchObject({ state: "failed", error: { code: "exhausted" } });
  });

  it("fails when it is not what it should be, rather than being taken as it is", async () => {
    const tree = machineTree(virtualMachine);
    tree.files["/sys/devices/system/cpu/online"] = "0-999999999\n";
    tree.files["/proc/cpuinfo"] = "";
    const { host } = await hostOf(tree);
    expect(await host.onlineCpus()).toMatchObject({ state: "failed", error: { code: "corrupt" } });
  });

  it("is named among the problems when the rest was read", async () => {
    const tree = machineTree(twoSockets);
    tree.files["/sys/devices/system/cpu/cpu3/topology/thread_siblings_list"] = "three\n";
    const { host } = await hostOf(tree);
    const reading = await host.cpuTopology();
    expect(reading).toMatchObject({ state: "read", problems: [{ code: "corrupt" }] });
    expect(readingValue(reading)?.[3]).toEqual({ id: 3, socket: 0 });
  });

  it("does not hang on a pipe where a file should be", async () => {
    const { host, root } = await hostOf(empty);
    await mkdir(join(root, "proc"));
    await promisify(execFile)("mkfifo", [join(root, "proc/meminfo")]);
    expect((await host.memoryTotal()).state).not.toBe("read");
  });
});

it("reads only the first CPUs of a large cpuinfo", async () => {
  const { files } = machineTree(virtualMachine);
  const cpuInfo = files["/proc/cpuinfo"]!.repeat(2_000);
  const { host } = await hostOf({ files: { "/proc/cpuinfo": cpuInfo }, links: {} });
  expect(readingValue(await host.cpuInfo())).toMatchObject({
    codeName: "Milan",
    flags: expect.arrayContaining(["avx2"]),
  });
});

it("throws the reason when its signal aborts", async () => {
  const { host } = await hostOf(machineTree(virtualMachine));
  const reason = new Error("enough");
  await expect(host.cpuInfo(AbortSignal.abort(reason))).rejects.toBe(reason);
});

it.each([
  ["v2", { "/sys/fs/cgroup/cgroup.controllers": "cpu memory\n" }],
  ["hybrid", { "/sys/fs/cgroup/unified/cgroup.controllers": "\n", "/sys/fs/cgroup/memory/tasks": "" }],
  ["v1", { "/sys/fs/cgroup/memory/tasks": "" }],
])("finds cgroup %s", async (version, files) => {
  const { host } = await hostOf({ files, links: {} });
  expect(readingValue(await host.cgroupVersion())).toBe(version);
});

it("finds pressure stall information", async () => {
  const { host } = await hostOf({
    files: { "/proc/pressure/cpu": "", "/proc/pressure/memory": "some\n" },
    links: {},
  });
  expect(readingValue(await host.pressureResources())).toEqual(["cpu", "memory"]);
});

describe.runIf(process.platform === "linux")("this machine", () => {
  it("is read in full", async () => {
    const host = new Host();
    const signal = new AbortController().signal;
    const [cpu, topology, nodes, memory, nics, kernel] = await Promise.all([
      host.cpuInfo(signal),
      host.cpuTopology(signal),
      host.numaNodes(signal),
      host.memoryTotal(signal),
      host.networkInterfaces(signal),
      host.kernelRelease(signal),
    ]);
    expect(readingValue(cpu)?.flags.length).toBeGreaterThan(0);
    expect(readingValue(topology)).toHaveLength(cpus().length);
    expect(
      readingValue(nodes)
        ?.flatMap((node) => node.cpus)
        .sort(),
    ).toEqual(
      readingValue(topology)!
        .map(({ id }) => id)
        .sort(),
    );
    expect(readingValue(memory)).toBeGreaterThan(2 ** 28);
    // A software interface, which every machine has.
    expect(readingValue(nics)!.map((nic) => nic.name)).not.toContain("lo");
    expect(readingValue(kernel)).toMatch(/^\d+\.\d+/);
  });
});
