import { compareQuantities, parseQuantity } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { inputs } from "../../../../../test/support/sizes.ts";
import type { ClaimedDevice, KubeletAnswer, PodHolding, Resources } from "./answer.ts";
import type { Machine } from "./machine.ts";
import { topologyZones, type ZoneOutput } from "./topology-zones.ts";
import type { ResourceList, TopologyZone } from "./zones.ts";

const MiB = 1024 * 1024;
const DRIVER = "gpu.example.com";
const deviceZones = new Map([["example.com/gpu", "GPU"]]);

interface World {
  machine: Machine;
  answer: KubeletAnswer;
}

/** A machine, and a kubelet on it that gives everything to one pod at most. */
const world: fc.Arbitrary<World> = fc
  .record({
    nodes: fc.array(
      fc.record({ cpus: fc.integer({ min: 1, max: 6 }), mib: fc.integer({ min: 8, max: 64 }) }),
      {
        minLength: 1,
        maxLength: 4,
      },
    ),
    sockets: fc.integer({ min: 1, max: 3 }),
    pods: fc.integer({ min: 1, max: 5 }),
    // To whom each thing goes: 0 is kept back, 1 is free, the rest are pods.
    choices: fc.infiniteStream(fc.nat()),
    wideMib: fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 6 }),
    devices: fc.array(
      fc.record({
        resource: fc.constantFrom("example.com/gpu", "example.com/nic"),
        nodes: fc.array(fc.nat()),
      }),
      { maxLength: 8 },
    ),
    claims: fc.array(fc.record({ device: fc.nat({ max: 3 }), pod: fc.nat() }), { maxLength: 8 }),
  })
  .map(({ nodes, sockets, pods, choices, wideMib, devices, claims }) => {
    const choice = () => choices.next().value! % (pods + 2);
    let cpu = 0;
    const machine = nodes.map((node, id) => ({
      id,
      cpus: Array.from({ length: node.cpus }, () => cpu++),
      memoryBytes: node.mib * MiB,
      socket: id % sockets,
    }));
    const empty = () => ({ devices: [], cpus: [], memory: [] }) as MutableResources;
    const allocatable = empty();
    const holdings = Array.from({ length: pods }, (_, at) => ({
      namespace: "ns",
      name: `pod-${at}`,
      claimed: [] as ClaimedDevice[],
      ...empty(),
    }));
    for (const { cpus } of machine) {
      for (const id of cpus) {
        const to = choice();
        if (to > 0) allocatable.cpus.push(id);
        if (to > 1) holdings[to - 2]!.cpus.push(id);
      }
    }
    // The kubelet never gives memory of a node that a block of several has to blocks of one: here all are wide.
    const all = machine.map(({ id }) => id);
    let left = 0;
    for (const { id, memoryBytes } of machine) {
      const bytes = memoryBytes - MiB;
      left += bytes / MiB;
      allocatable.memory.push({ type: "memory", bytes: BigInt(bytes), nodes: [id] });
    }
    for (const mib of wideMib) {
      const to = choice();
      if (to < 2 || mib > left) continue;
      left -= mib;
      holdings[to - 2]!.memory.push({ type: "memory", bytes: BigInt(mib * MiB), nodes: all });
    }
    for (const [at, { resource, nodes: near }] of devices.entries()) {
      const device = {
        resource,
        ids: [`d${at}`],
        nodes: [...new Set(near.map((each) => each % all.length))],
      };
      const to = choice();
      if (to > 0) allocatable.devices.push(device);
      if (to > 1) holdings[to - 2]!.devices.push(device);
    }
    for (const { device, pod } of claims) {
      holdings[pod % pods]!.claimed.push({ driver: DRIVER, pool: "worker-1", device: String(device) });
    }
    return { machine, answer: { allocatable, pods: holdings } };
  });

type MutableResources = { -readonly [each in keyof Resources]: Resources[each][number][] };

const convert = ({ machine, answer }: World): ZoneOutput =>
  topologyZones({
    machine,
    answer,
    deviceZones,
    siblingNumaMaxDistance: 255,
    // Two are on a node, and of the others nothing is known.
    deviceAttributes: (_, __, device) => (Number(device) < 2 ? { numaNode: { int: 0 } } : undefined),
    podUid: (_, name) => `uid-of-${name}`,
  });

const every = (zones: readonly TopologyZone[]): TopologyZone[] =>
  zones.flatMap((zone) => [zone, ...every(zone.children ?? [])]);

// Zones of devices of claims, which have no amounts, and the others.
const parted = (zones: readonly TopologyZone[]): [TopologyZone[], TopologyZone[]] => [
  zones.filter(({ type }) => type === "DRADevice"),
  zones.filter(({ type }) => type !== "DRADevice"),
];

const amount = (list: ResourceList | undefined, resource: string) =>
  parseQuantity(list?.[resource] ?? "0").nano / 1_000_000_000n;

const heldIn = (zone: TopologyZone, resource: string) =>
  (zone.allocations ?? []).reduce((sum, { requests }) => sum + amount(requests, resource), 0n);

it("holds what is given out: no more than can be given, and all of it", () => {
  fc.assert(
    fc.property(world, (each) => {
      const { zones, problems, unknownPods } = convert(each);
      expect([...problems, ...unknownPods]).toEqual([]);
      const [claimed, counted] = parted(every(zones));
      for (const zone of counted) {
        const { capacity = {}, allocatable = {} } = zone.resources;
        const resources = new Set([
          ...Object.keys(allocatable),
          ...(zone.allocations ?? []).flatMap(({ requests }) => Object.keys(requests)),
        ]);
        for (const resource of resources) {
          expect(heldIn(zone, resource)).toBeLessThanOrEqual(amount(allocatable, resource));
          expect(
            compareQuantities(parseQuantity(allocatable[resource]!), parseQuantity(capacity[resource]!)),
          ).toBeLessThanOrEqual(0);
        }
      }
      const numa = counted.filter(({ type }) => type === "Numa");
      const sum = (resource: string) => numa.reduce((all, zone) => all + heldIn(zone, resource), 0n);
      const { pods } = each.answer;
      expect(sum("cpu")).toBe(BigInt(pods.flatMap(({ cpus }) => cpus).length));
      const bytes = pods.flatMap(({ memory }) => memory).reduce((all, block) => all + block.bytes, 0n);
      expect(sum("memory")).toBe(bytes);
      const places = pods.flatMap(({ devices }) => devices.flatMap(({ nodes }) => nodes));
      expect(sum("example.com/gpu") + sum("example.com/nic")).toBe(BigInt(places.length));
      const holds = pods.flatMap((pod) => pod.claimed.map(({ device }) => `${pod.name} ${device}`));
      expect(claimed.flatMap(({ allocations }) => allocations)).toHaveLength(new Set(holds).size);
    }),
    { numRuns: inputs(300) },
  );
});

it("is the same whatever the order of pods, devices, CPUs, blocks and nodes", () => {
  const shuffledWorld = world.chain(({ machine, answer: { allocatable, pods } }) =>
    fc
      .record({
        machine: shuffled(machine),
        allocatable: shuffledResources(allocatable),
        pods: fc.tuple(...pods.map(shuffledPod)).chain((each) => shuffled(each as PodHolding[])),
      })
      .map((other) => ({
        one: { machine, answer: { allocatable, pods } },
        other: { machine: other.machine, answer: { allocatable: other.allocatable, pods: other.pods } },
      })),
  );
  fc.assert(
    fc.property(shuffledWorld, ({ one, other }) => {
      expect(JSON.stringify(convert(other).zones)).toBe(JSON.stringify(convert(one).zones));
    }),
    { numRuns: inputs(300) },
  );
});

it("never fails, for any response of the kubelet", () => {
  const nodes = fc.array(fc.integer({ min: -2, max: 3 }), { maxLength: 3 });
  const resources = fc.record({
    devices: fc.array(fc.record({ resource: fc.string(), ids: fc.array(fc.string()), nodes }), {
      maxLength: 4,
    }),
    cpus: fc.array(fc.integer({ min: -1, max: 8 })),
    memory: fc.array(
      fc.record({ type: fc.string(), bytes: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), nodes }),
    ),
  });
  const claims = fc.record({ driver: fc.string(), pool: fc.string(), device: fc.string() });
  const pods = fc.array(
    fc
      .tuple(resources, fc.array(claims, { maxLength: 4 }), fc.string(), fc.string())
      .map(([held, claimed, namespace, name]) => ({ ...held, claimed, namespace, name })),
  );
  fc.assert(
    fc.property(resources, pods, (allocatable, holdings) => {
      const machine = [
        { id: 0, cpus: [0, 1], socket: 0 },
        { id: 1, cpus: [2], socket: 0 },
      ];
      const { zones } = convert({ machine, answer: { allocatable, pods: holdings } });
      expect(zones.filter(({ type }) => type === "Socket")).toHaveLength(1);
    }),
  );
});

function shuffled<T>(list: readonly T[]): fc.Arbitrary<T[]> {
  return fc.shuffledSubarray([...list], { minLength: list.length });
}

function shuffledResources({ devices, cpus, memory }: Resources): fc.Arbitrary<Resources> {
  return fc.record({ devices: shuffled(devices), cpus: shuffled(cpus), memory: shuffled(memory) });
}

function shuffledPod(pod: PodHolding): fc.Arbitrary<PodHolding> {
  return fc
    .tuple(shuffledResources(pod), shuffled(pod.claimed))
    .map(([resources, claimed]) => ({ ...pod, ...resources, claimed }));
}
