import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { FakeClock, systemClock } from "@nodekeeper/core/lib";
import { afterEach, describe, expect, it } from "vitest";
import { Host, PodReadings, readingValue } from "./index.ts";

const Gi = 2 ** 30;
const Mi = 2 ** 20;
const fixtures = join(import.meta.dirname, "../../../../test/fixtures/host");
const guaranteed = "8a7f4c52-0d0e-4f57-9d9f-0c3d5b1c7a01";
const burstable = "2f0c1b9e-93c4-4d8a-b0a5-6c1f6d0e7b02";
const onTwoNodes = "51e6b2d0-9c1a-4c1e-a8fd-2f6f8a1c0d01";
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

function machine(root: string) {
  const clock = new FakeClock(1_000);
  return { host: new Host({ root, clock }), pods: new PodReadings({ root, clock }) };
}

async function changeable(name: string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "host-"));
  cleanups.push(() => rm(root, { recursive: true, force: true }));
  await cp(join(fixtures, name), root, { recursive: true });
  return root;
}

describe("one socket, cgroup v2, systemd", () => {
  const { host, pods } = machine(join(fixtures, "one-socket-v2"));

  it("reads memory, watermarks, pressure, CPU times and process numbers", async () => {
    expect(readingValue(await host.memory())).toEqual({
      totalBytes: 65_746_560 * 1024,
      freeBytes: 6 * Gi,
      availableBytes: 30_408_704 * 1024,
      inactiveFileBytes: 11 * Gi,
      watermarkScaleFactor: 10,
    });
    // A machine that does not report it.
    const bare = machine(join(fixtures, "two-sockets-v1")).host;
    expect(readingValue(await bare.memory())?.inactiveFileBytes).toBeUndefined();
    expect(readingValue(await host.nodeMemory())).toEqual([
      {
        id: 0,
        totalBytes: (3_840 + 460_000 + 15_900_000) * 4096,
        // DMA reserves all its pages.
        freeBytes: (262_144 - 62_109 + 1_306_880) * 4096,
        minBytes: (4 + 700 + 15_800) * 4096,
        lowBytes: (7 + 1_400 + 31_600) * 4096,
        inactiveFileBytes: (1_000 + 2_882_584) * 4096,
      },
    ]);
    expect(readingValue(await host.pressure("memory"))?.some).toEqual({
      avg10: 1.25,
      avg60: 0.8,
      avg300: 0.31,
    });
    expect(readingValue(await host.cpuTimes())).toMatchObject({ cpus: 8 });
    expect(readingValue(await host.pids())).toEqual({ max: 513_204, current: 2431 });
  });

  it("reads what pods use, with their pressure", async () => {
    const reading = await pods.pods();
    expect(reading).toMatchObject({ state: "read", at: 0, problems: [] });
    const state = readingValue(reading)!;
    expect(state.pods.size).toBe(3);
    expect(state.pods.get(burstable)).toMatchObject({
      memory: {
        usageBytes: 20 * Gi,
        rssBytes: 15 * Gi,
        workingSetBytes: 17 * Gi,
        // Undefined, because the machine has a single node.
        nodeBytes: undefined,
      },
      memoryPressure: { some: { avg10: 22.5 } },
    });
    expect(state.pods.get(guaranteed)?.memory.workingSetBytes).toBe(8 * Gi - 512 * Mi);
    expect(state.groupPressure.get("burstable")?.some.avg10).toBe(16.4);
    expect(state.groupPressure.get("all")?.some.avg10).toBe(9.5);
  });

  it("reads the pressure of any cgroup", async () => {
    const pressure = await pods.pressure("/kubepods.slice/kubepods-besteffort.slice", "memory");
    expect(readingValue(pressure)?.some.avg10).toBe(0.5);
    expect((await pods.pressure("/nowhere", "memory")).state).toBe("missing");
  });
});

describe("two sockets, cgroup v1, cgroupfs", () => {
  const { host, pods } = machine(join(fixtures, "two-sockets-v1"));

  it("reads memory by node", async () => {
    const nodes = readingValue(await host.nodeMemory());
    expect(nodes?.map(({ id, freeBytes, inactiveFileBytes }) => [id, freeBytes, inactiveFileBytes])).toEqual([
      [0, 196_608 * 4096, Gi / 2],
      [1, 447_744 * 4096, 16 * Gi],
    ]);
  });

  it("has no pressure, which is missing and not 0", async () => {
    expect((await host.pressure("memory")).state).toBe("missing");
    const state = readingValue(await pods.pods())!;
    expect(state.groupPressure.size).toBe(0);
    expect(state.pods.get(onTwoNodes)?.memoryPressure).toBeUndefined();
  });

  it("reads what pods use with all below them, by node too", async () => {
    const state = readingValue(await pods.pods())!;
    expect([...state.pods.keys()]).toContain("1d2c3b4a5f6e7d8c9b0a1f2e3d4c5b6a");
    const { memory } = state.pods.get(onTwoNodes)!;
    expect(memory).toMatchObject({ usageBytes: 50 * Gi, rssBytes: 40 * Gi, workingSetBytes: 42 * Gi });
    expect([...memory.nodeBytes!]).toEqual([
      [0, 10 * Gi],
      [1, 38 * Gi],
    ]);
  });

  it("takes the lower of the two limits of process numbers", async () => {
    expect(readingValue(await host.pids())).toEqual({ max: 65_536, current: 14_431 });
  });
});

describe("what changes under the reader", () => {
  const group = "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice";
  const pod = `kubepods-burstable-pod${burstable.replaceAll("-", "_")}.slice`;

  it("a pod that ends is removed, a new one is added", async () => {
    const root = await changeable("one-socket-v2");
    const { pods } = machine(root);
    await pods.pods();
    await rename(join(root, group, pod), join(root, group, "kubepods-burstable-podabc_def.slice"));
    const state = readingValue(await pods.pods())!;
    expect(state.pods.has(burstable)).toBe(false);
    expect(state.pods.get("abc-def")?.memory.rssBytes).toBe(15 * Gi);
  });

  it("a pod whose directory is being removed is left out, and the others stay", async () => {
    const root = await changeable("one-socket-v2");
    const at = join(root, group, pod);
    await rm(at, { recursive: true });
    await mkdir(at);
    const state = readingValue(await machine(root).pods.pods())!;
    expect([...state.pods.keys()]).toHaveLength(2);
  });

  it("a file that makes no sense has no value", async () => {
    const root = await changeable("one-socket-v2");
    await writeFile(join(root, group, pod, "memory.stat"), "<html>\n");
    await writeFile(join(root, group, pod, "memory.pressure"), "some junk\n");
    const reading = await machine(root).pods.pods();
    expect(readingValue(reading)?.pods.get(burstable)).toMatchObject({
      memory: { usageBytes: 20 * Gi, rssBytes: undefined, workingSetBytes: undefined },
      memoryPressure: undefined,
    });
    expect(reading).toMatchObject({ problems: [{ code: "corrupt" }] });
  });

  it("a file that is too long is a problem of its pod alone", async () => {
    const root = await changeable("one-socket-v2");
    await writeFile(join(root, group, pod, "memory.stat"), "x".repeat(100_000));
    const reading = await machine(root).pods.pods();
    expect(readingValue(reading)?.pods.size).toBe(3);
    expect(reading).toMatchObject({ problems: [{ code: "exhausted" }] });
  });

  it("a pipe where a file should be blocks no other reading", async () => {
    const root = await changeable("one-socket-v2");
    await rm(join(root, group, pod, "memory.stat"));
    await promisify(execFile)("mkfifo", [join(root, group, pod, "memory.stat")]);
    const state = readingValue(await machine(root).pods.pods())!;
    expect(state.pods.get(burstable)?.memory.rssBytes).toBeUndefined();
    expect(state.pods.get(guaranteed)?.memory.rssBytes).toBe(6 * Gi);
  });

  it("without cgroups nothing is known, which is not 'no pods'", async () => {
    const root = await changeable("one-socket-v2");
    await rm(join(root, "sys"), { recursive: true });
    expect((await machine(root).pods.pods()).state).toBe("missing");
  });
});

it("finds cgroups where they are mounted", async () => {
  const root = await changeable("one-socket-v2");
  await rename(join(root, "sys/fs/cgroup"), join(root, "cgroups"));
  const pods = new PodReadings({ root, cgroupRoot: "/cgroups/", clock: systemClock });
  expect(readingValue(await pods.pods())?.pods.size).toBe(3);
});

it("file systems are read by path", async () => {
  const root = await changeable("one-socket-v2");
  const { host } = machine(root);
  const state = readingValue(await host.filesystem("/proc"))!;
  expect(state.sizeBytes).toBeGreaterThan(state.availableBytes);
  expect(state.availableBytes).toBeGreaterThan(0);
  expect((await host.filesystem("/nowhere")).state).toBe("missing");
});

describe.runIf(process.platform === "linux")("this machine", () => {
  it("reads its state", async () => {
    const host = new Host();
    const signal = new AbortController().signal;
    const [memory, nodes, times, pids, filesystem] = await Promise.all([
      host.memory(signal),
      host.nodeMemory(signal),
      host.cpuTimes(signal),
      host.pids(signal),
      host.filesystem("/", signal),
    ]);
    const { totalBytes, freeBytes } = readingValue(memory)!;
    expect(freeBytes).toBeLessThan(totalBytes);
    expect(freeBytes).toBeGreaterThan(0);
    for (const node of readingValue(nodes)!) {
      expect(node.minBytes).toBeGreaterThan(0);
      expect(node.lowBytes).toBeGreaterThanOrEqual(node.minBytes);
      expect(node.totalBytes).toBeGreaterThan(node.freeBytes);
    }
    expect(readingValue(times)?.busyTicks).toBeGreaterThan(0);
    expect(readingValue(pids)?.current).toBeGreaterThan(1);
    expect(readingValue(filesystem)?.sizeBytes).toBeGreaterThan(2 ** 20);
    // `missing` on machines without cgroups or pods.
    expect(["read", "missing"]).toContain((await new PodReadings().pods(signal)).state);
  });
});
