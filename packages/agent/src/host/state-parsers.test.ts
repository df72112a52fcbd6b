import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cgroupMemoryOf, memoryV1, memoryV2, nodeBytesOf, statValue } from "./cgroup-memory.ts";
import { cpuUseBetween, parseCpuTimes } from "./cpu-times.ts";
import { podUidOf } from "./pod-cgroups.ts";
import { parsePressure } from "./pressure.ts";
import { threadsOf } from "./processes.ts";
import { freshReading, mapReading, type Reading } from "./reading.ts";
import { nodeMemoryOf, parseZoneInfo, type Zone } from "./zone-info.ts";

const percent = fc.integer({ min: 0, max: 10_000 }).map((hundredths) => hundredths / 100);
const stall = fc.record({ avg10: percent, avg60: percent, avg300: percent, total: fc.nat(2 ** 31 - 1) });

describe("pressure", () => {
  it("is read whatever its values", () => {
    fc.assert(
      fc.property(stall, fc.option(stall, { nil: undefined }), (some, full) => {
        const text = (kind: string, each: typeof some) =>
          `${kind} avg10=${each.avg10.toFixed(2)} avg60=${each.avg60.toFixed(2)} avg300=${each.avg300.toFixed(2)} total=${each.total}\n`;
        const read = parsePressure(text("some", some) + (full ? text("full", full) : ""));
        const expected = ({ total: _total, ...averages }: typeof some) => averages;
        expect(read.some).toEqual(expected(some));
        expect(read.full).toEqual(full && expected(full));
      }),
    );
  });

  it.each([
    "",
    "some avg10=1.00",
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0",
    "some avg10=NaN avg60=0.00 avg300=0.00 total=0",
    "some avg10=-1.00 avg60=0.00 avg300=0.00 total=0",
  ])("refuses %j", (text) => expect(() => parsePressure(text)).toThrow("is not pressure stall information"));

  it("survives any text", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(() => parsePressure(text)).toThrow("is not pressure");
      }),
    );
  });
});

describe("zones", () => {
  const zone = (name: string, pages: Partial<Zone> = {}): Zone => ({
    node: 0,
    name,
    managed: 1_000,
    free: 30,
    min: 10,
    low: 20,
    inactiveFile: 40,
    reserve: 0,
    ...pages,
  });
  const pages = (zones: readonly Zone[]) =>
    nodeMemoryOf(zones, 1).map(({ totalBytes, freeBytes, minBytes, lowBytes, inactiveFileBytes }) => [
      ...[totalBytes, freeBytes, minBytes, lowBytes, inactiveFileBytes],
    ]);

  it.each([
    [
      "are added up",
      [zone("DMA32", { free: 700 }), zone("Normal"), zone("Movable")],
      [3_000, 760, 30, 60, 120],
    ],
    ["count if it is the only one", [zone("DMA32")], [1_000, 30, 10, 20, 40]],
    ["do not count if empty", [zone("Normal"), zone("Movable", { managed: 0 })], [1_000, 30, 10, 20, 40]],
    ["of devices do not count", [zone("Normal"), zone("Device")], [1_000, 30, 10, 20, 40]],
    [
      "count without the pages that they reserve",
      [zone("DMA32", { free: 700, reserve: 600 }), zone("Normal")],
      [2_000, 130, 20, 40, 80],
    ],
    [
      "that reserve all their pages have none free",
      [zone("DMA", { free: 700, reserve: 900 }), zone("Normal")],
      [2_000, 30, 20, 40, 80],
    ],
  ])("%s", (_, zones, node) => expect(pages(zones)).toEqual([node]));

  it("of a node are multiplied by the size of a page", () => {
    expect(nodeMemoryOf([zone("Normal", { node: 3 })], 4096)).toEqual([
      {
        id: 3,
        totalBytes: 1_000 * 4096,
        freeBytes: 30 * 4096,
        minBytes: 10 * 4096,
        lowBytes: 20 * 4096,
        inactiveFileBytes: 40 * 4096,
      },
    ]);
  });

  it("of which a figure is missing leave their node out", () => {
    const zones = [zone("DMA32"), zone("Normal", { low: undefined }), zone("Normal", { node: 1 })];
    expect(nodeMemoryOf(zones, 1).map(({ id }) => id)).toEqual([1]);
  });

  it("are read in any order of nodes and names, and nothing of their per-CPU lists is taken for a watermark", () => {
    const number = fc.nat(2 ** 40);
    const zones = fc.uniqueArray(
      fc.record({
        node: fc.nat(7),
        name: fc.constantFrom("DMA", "DMA32", "Normal", "Movable"),
        managed: number,
        free: number,
        min: number,
        low: number,
        inactiveFile: number,
        reserve: number,
      }),
      { selector: ({ node, name }) => `${node}${name}` },
    );
    fc.assert(
      fc.property(zones, (zones) => {
        const text = zones
          .map(
            (each) =>
              `Node ${each.node}, zone ${each.name.padStart(8)}\n  per-node stats\n      nr_inactive_file 9\n` +
              `  pages free     ${each.free}\n        min      ${each.min}\n        low      ${each.low}\n` +
              `        managed  ${each.managed}\n        protection: (0, 7, ${each.reserve})\n` +
              `      nr_free_pages ${each.free}\n` +
              `      nr_zone_inactive_file ${each.inactiveFile}\n  pagesets\n    cpu: 0\n              high:     378\n` +
              "              low:      12\n              min:      11\n",
          )
          .join("");
        expect(parseZoneInfo(text)).toEqual(zones);
      }),
    );
  });

  it("survive any text", () => {
    fc.assert(fc.property(fc.string(), (text) => nodeMemoryOf(parseZoneInfo(text), 4096).length === 0));
  });
});

describe("CPU times", () => {
  it("count what was stolen as busy, and guests once", () => {
    const times = parseCpuTimes("cpu  10 20 30 100 5 1 2 3 10 20\ncpu0 10 20 30 100 5 1 2 3 10 20\nintr 1\n");
    expect(times).toEqual({ busyTicks: 66, totalTicks: 171, cpus: 1 });
  });

  it.each(["", "intr 1", "cpu 1 2", "cpu  1 2 3 4 5\n"])("refuse %j", (text) => {
    expect(() => parseCpuTimes(text)).toThrow("no CPU times");
  });

  it.each([
    ["half", { busyTicks: 150, totalTicks: 200, cpus: 4 }, { share: 0.5, cpus: 4 }],
    ["none when no tick went by", { busyTicks: 100, totalTicks: 100, cpus: 4 }, undefined],
    ["none when counters went back", { busyTicks: 90, totalTicks: 200, cpus: 4 }, undefined],
  ])("make a use of two looks: %s", (_, after, use) => {
    expect(cpuUseBetween({ busyTicks: 100, totalTicks: 100, cpus: 4 }, after)).toEqual(use);
  });
});

it.each([
  ["0.00 0.09 0.49 1/93 6789", 93],
  ["0.00 0.09 0.49 1/ 6789", undefined],
  ["", undefined],
])("threads of %j are %s", (text, threads) => expect(threadsOf(text)).toBe(threads));

describe("memory of a cgroup", () => {
  it.each([
    ["first", "anon 5\nfile 6", 5],
    ["last", "file 6\nanon 5", 5],
    ["not another's end", "xanon 7\nanon 5\n", 5],
    ["not another's beginning", "anon_thp 7\nanon 5\n", 5],
    ["absent", "anon_thp 7\n", undefined],
    ["nonsense", "anon five\n", undefined],
    ["empty", "", undefined],
  ])("finds a field: %s", (_, text, value) => expect(statValue(text, "anon")).toBe(value));

  it("finds any field of any flat keyed file", () => {
    const entries = fc.uniqueArray(fc.tuple(fc.stringMatching(/^[a-z_]{1,8}$/), fc.maxSafeNat()), {
      selector: ([key]) => key,
      minLength: 1,
    });
    fc.assert(
      fc.property(entries, (entries) => {
        const text = entries.map(([key, value]) => `${key} ${value}\n`).join("");
        for (const [key, value] of entries) expect(statValue(text, key)).toBe(value);
      }),
    );
  });

  it.each([
    [
      "v2",
      "anon N0=1 N1=2\nfile N0=4 N1=8\nunevictable N0=1 N1=1",
      ["anon", "file"],
      1,
      [
        [0, 5],
        [1, 10],
      ],
    ],
    [
      "v1",
      "total=1 N0=1\nhierarchical_total=3 N0=1 N1=2",
      ["hierarchical_total"],
      4096,
      [
        [0, 4096],
        [1, 8192],
      ],
    ],
  ] as const)("adds up nodes of %s", (_, text, keys, unit, sums) => {
    expect([...nodeBytesOf(text, keys, unit)!]).toEqual(sums);
  });

  it.each(["anon N0=1", "anon N0=1\nfile N0=x", "anon N0=1\nfile junk=1", ""])(
    "reports no part of a sum: %j",
    (text) => expect(nodeBytesOf(text, ["anon", "file"], 1)).toBeUndefined(),
  );

  it("is not reported where its files are not, rather than being 0", () => {
    const nothing = { usage: undefined, stat: undefined, nodes: undefined };
    const unknown = {
      usageBytes: undefined,
      rssBytes: undefined,
      workingSetBytes: undefined,
      nodeBytes: undefined,
    };
    expect(cgroupMemoryOf(nothing, memoryV2, 4096)).toEqual(unknown);
    expect(cgroupMemoryOf({ ...nothing, usage: "junk", stat: "anon x" }, memoryV2, 4096)).toEqual(unknown);
    const pages = { ...nothing, nodes: "hierarchical_total=1 N0=1" };
    expect(cgroupMemoryOf(pages, memoryV1, undefined).nodeBytes).toBeUndefined();
  });

  it("has no working set below 0 when the cache shrank between two reads", () => {
    const texts = { usage: "100\n", stat: "anon 5\ninactive_file 200\n", nodes: undefined };
    expect(cgroupMemoryOf(texts, memoryV2, 4096)).toMatchObject({ workingSetBytes: 0, rssBytes: 5 });
  });
});

const _id = "0123456789abcdef".repeat(4);
describe("names of cgroups", () => {
  it.each([
    ["pod8a7f4c52-0d0e-4f57-9d9f-0c3d5b1c7a01", "8a7f4c52-0d0e-4f57-9d9f-0c3d5b1c7a01"],
    ["kubepods-pod8a7f4c52_0d0e_4f57_9d9f_0c3d5b1c7a01.slice", "8a7f4c52-0d0e-4f57-9d9f-0c3d5b1c7a01"],
    ["kubepods-burstable-pod8a7f4c52_0d0e.slice", "8a7f4c52-0d0e"],
    ["kubelet-kubepods-besteffort-pod1d2c3b4a.slice", "1d2c3b4a"],
    ["pod1d2c3b4a5f6e7d8c9b0a1f2e3d4c5b6a", "1d2c3b4a5f6e7d8c9b0a1f2e3d4c5b6a"],
    ["burstable", undefined],
    ["kubepods-burstable.slice", undefined],
    ["podman.slice", undefined],
    ["system.slice", undefined],
    ["pod", undefined],
  ])("%s is the pod %s", (name, uid) => expect(podUidOf(name)).toBe(uid));
});

describe("readings", () => {
  const read: Reading<number> = { state: "read", at: 10_000, value: 7, problems: [] };
  const missing: Reading<number> = { state: "missing", at: 0, message: "none" };

  it.each([
    ["of now", 10_000, "read"],
    ["at the limit", 11_000, "read"],
    ["over it", 11_001, "stale"],
  ])("%s", (_, now, state) => expect(freshReading(read, now, 1_000).state).toBe(state));

  it("that have no value stay what they are", () => {
    expect(freshReading(missing, 10 ** 9, 1)).toBe(missing);
    expect(mapReading(missing, () => 1, "")).toBe(missing);
  });

  it("are turned into others, or are missing", () => {
    expect(mapReading(read, (value) => value + 1, "")).toMatchObject({ state: "read", value: 8, at: 10_000 });
    expect(mapReading(read, () => undefined, "why")).toEqual({
      state: "missing",
      at: 10_000,
      message: "why",
    });
  });
});
