import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import {
  armMachine,
  type FixtureMachine,
  rootOf,
  twoSockets,
  virtualMachine,
} from "../../../../../test/fixtures/machines.ts";
import { Host } from "../../host/index.ts";
import { MachineReader, machineOf } from "./machine.ts";

async function write(machine: FixtureMachine) {
  const root = await rootOf(machine);
  const host = new Host({ root });
  return { root, host, reader: new MachineReader(host) };
}

/** Both directions, sorted by CPU. */
const pairs = (...cores: [number, number][]) =>
  cores
    .flatMap(([one, other]) => [
      [one, other],
      [other, one],
    ])
    .sort(([a], [b]) => a! - b!);

const signal = new AbortController().signal;

describe("machineOf", () => {
  it("uses the socket of a node's first CPU, and 0 if it is unknown", () => {
    const nodes = [
      { id: 1, cpus: [2, 3] },
      { id: 0, cpus: [0, 1] },
      { id: 2, cpus: [] },
    ];
    const cpus = [{ id: 0, socket: 4 }, { id: 1, socket: 5 }, { id: 2 }];
    expect(machineOf(nodes, cpus)).toEqual([
      { id: 0, cpus: [0, 1], socket: 4 },
      { id: 1, cpus: [2, 3], socket: 0 },
      { id: 2, cpus: [] },
    ]);
  });

  it("pairs the threads of cores that have two", () => {
    const nodes = [
      { id: 0, cpus: [0, 1, 4, 5] },
      { id: 1, cpus: [2, 3, 6, 7, 8, 9] },
    ];
    const cpus = [[0, 4], [1, 5], [2], undefined, [0, 4], [1, 5], [6, 7, 8, 9]].map((threads, id) => ({
      id,
      socket: 0,
      ...(threads ? { threads } : {}),
    }));
    expect(machineOf(nodes, cpus).map(({ threadSiblings }) => threadSiblings)).toEqual([
      [
        [0, 4],
        [1, 5],
        [4, 0],
        [5, 1],
      ],
      undefined,
    ]);
  });
});

describe("a machine with caches and distances", () => {
  it("is read, and caches are named where a node has several of its own", async () => {
    const { root, reader } = await write(twoSockets);
    const put = async (path: string, text: string) => {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    };
    const before = await reader.read(signal);
    const [node] = before;
    const [first, second, ...others] = node!.cpus;
    const groups = [[first!, second!], others];
    for (const [id, cpus] of groups.entries()) {
      for (const cpu of cpus) {
        const cache = `/sys/devices/system/cpu/cpu${cpu}/cache/index3`;
        await put(`${cache}/level`, "3\n");
        await put(`${cache}/id`, `${id}\n`);
        await put(`${cache}/shared_cpu_list`, `${cpus.join(",")}\n`);
      }
    }
    for (const [at, { id }] of before.entries()) {
      const distances = before.map((_, other) => (other === at ? 10 : 21));
      await put(`/sys/devices/system/node/node${id}/distance`, `${distances.join(" ")}\n`);
    }
    const machine = await new MachineReader(new Host({ root })).read(signal);
    expect(machine[0]).toEqual({
      ...node,
      distances: [10, 21],
      cacheGroups: groups.map((cpus, id) => ({ id, cpus })),
    });
    expect(machine[1]).toEqual({ ...before[1], distances: [21, 10] });
  });
});

describe("MachineReader", () => {
  it.each<[string, FixtureMachine, unknown]>([
    [
      "two sockets, two CPUs offline, memory on one",
      twoSockets,
      [
        {
          id: 0,
          socket: 0,
          cpus: [0, 1, 2, 3, 8, 9, 10, 11],
          memoryBytes: 131_072_000 * 1024,
          threadSiblings: pairs([0, 8], [1, 9], [2, 10], [3, 11]),
        },
        {
          id: 1,
          socket: 1,
          cpus: [4, 5, 6, 7, 12, 13],
          memoryBytes: 0,
          threadSiblings: pairs([4, 12], [5, 13]),
        },
      ],
    ],
    [
      "one socket without NUMA",
      virtualMachine,
      [{ id: 0, socket: 0, cpus: [0, 1], memoryBytes: 4_015_032 * 1024 }],
    ],
    ["arm64", armMachine, [{ id: 0, socket: 0, cpus: [0, 1, 2, 3], memoryBytes: 16_000_000 * 1024 }]],
  ])("reads a machine of %s", async (_, machine, expected) => {
    const { reader } = await write(machine);
    expect(await reader.read(signal)).toEqual(expected);
  });

  it("reads it whole again only when CPUs or memory come or go", async () => {
    const { root, host, reader } = await write(twoSockets);
    const topology = vi.spyOn(host, "cpuTopology");
    await reader.read(signal);
    expect(await reader.read(signal)).toHaveLength(2);
    expect(topology).toHaveBeenCalledTimes(1);
    await writeFile(join(root, "sys/devices/system/cpu/online"), "0-3,8-11\n");
    await writeFile(join(root, "sys/devices/system/node/node1/cpulist"), "\n");
    expect((await reader.read(signal))[1]).toEqual({ id: 1, cpus: [], memoryBytes: 0 });
    expect(topology).toHaveBeenCalledTimes(2);
  });

  it("throws where a part can't be read: half a machine is none", async () => {
    const { reader } = await write({ ...twoSockets, online: "zero" });
    await expect(reader.read(signal)).rejects.toThrow(/online/);
    const empty = await write(virtualMachine);
    await mkdir(join(empty.root, "empty"));
    await expect(
      new MachineReader(new Host({ root: join(empty.root, "empty") })).read(signal),
    ).rejects.toMatchObject({
      code: "unavailable",
    });
  });
});
