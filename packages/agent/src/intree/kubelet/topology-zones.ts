import type { KubeletAnswer, PodHolding } from "./answer.ts";
import { type DeviceAttributesLookup, enterClaimedDevices } from "./claimed-zones.ts";
import { enterDevices } from "./device-zones.ts";
import type { Machine, MachineNode } from "./machine.ts";
import { enterMemory } from "./memory-zones.ts";
import { cpuListText, enterNumaAttributes } from "./numa-attributes.ts";
import { Problems } from "./problems.ts";
import { add, type TopologyZone, ZoneLedger, type ZoneTree, zonesOf } from "./zones.ts";

export interface ZoneInput {
  readonly machine: Machine;
  readonly answer: KubeletAnswer;
  /**
   * Zone types by resource name or DRA driver name. Devices of other resources are only counted on their NUMA nodes;
   * those of other drivers have the zone type "DRADevice".
   */
  readonly deviceZones: ReadonlyMap<string, string>;
  /** Maximum distance of the nearest NUMA nodes to be siblings. A node's distance to itself is 10. */
  readonly siblingNumaMaxDistance: number;
  /** Attributes of DRA devices. */
  readonly deviceAttributes: DeviceAttributesLookup;
  /** Returns the UID of a running pod; undefined if it is not running or not yet known. */
  readonly podUid: (namespace: string, name: string) => string | undefined;
}

export interface ZoneOutput {
  readonly zones: TopologyZone[];
  /** "namespace/name" of pods with allocations whose UID is unknown. Their allocations are not reported. */
  readonly unknownPods: string[];
  /** Problems of the kubelet's response, one line each. */
  readonly problems: string[];
}

/**
 * Converts the kubelet's response to zones: sockets, their NUMA nodes, and their devices. Unknown values are omitted,
 * never zero. The result is independent of the order of pods, containers and devices in the response.
 */
export function topologyZones(input: ZoneInput): ZoneOutput {
  const { machine, answer, deviceZones, siblingNumaMaxDistance, deviceAttributes, podUid } = input;
  const problems = new Problems();
  const nodes = new Map(machine.map((node) => [node.id, nodeLedger(node)]));
  const allocatableCpus = answer.allocatable.cpus;
  enterNumaAttributes({ machine, nodes, allocatableCpus, siblingNumaMaxDistance });
  const unknownPods = new Set<string>();
  const holders = answer.pods.filter(holdsAnything).map((pod) => {
    const uid = podUid(pod.namespace, pod.name);
    if (uid === undefined) unknownPods.add(`${pod.namespace}/${pod.name}`);
    return { ...pod, consumer: uid === undefined ? undefined : `${pod.namespace}/${pod.name}/${uid}` };
  });
  const consumers = holders.flatMap((holder) =>
    holder.consumer === undefined ? [] : [{ ...holder, consumer: holder.consumer }],
  );

  const tree = { nodes, problems };
  enterCpus(tree, machine, allocatableCpus, consumers);
  enterMemory(tree, answer.allocatable, consumers);
  const apart = [
    ...enterDevices(tree, answer.allocatable, holders, deviceZones),
    ...enterClaimedDevices(tree, consumers, deviceZones, deviceAttributes),
  ];
  return {
    zones: zonesOf([...underSockets(machine, nodes), ...apart]),
    unknownPods: [...unknownPods].sort(),
    problems: problems.list(),
  };
}

function holdsAnything({ cpus, memory, devices, claimed }: PodHolding): boolean {
  return cpus.length > 0 || memory.length > 0 || devices.length > 0 || claimed.length > 0;
}

function nodeLedger({ id, cpus, memoryBytes }: MachineNode): ZoneLedger {
  const ledger = new ZoneLedger("Numa", String(id));
  add(ledger.capacity, "cpu", BigInt(cpus.length));
  if (memoryBytes !== undefined) add(ledger.capacity, "memory", BigInt(memoryBytes));
  return ledger;
}

// Name from katalyst-core pkg/consts/cnr.go.
const CPU_LISTS = "cpu_lists";

/** Creates a zone for each L3 cache below its NUMA node. Returns the zones by CPU. */
function enterCacheGroups(
  machine: Machine,
  nodes: ReadonlyMap<number, ZoneLedger>,
): ReadonlyMap<number, ZoneLedger> {
  const byCpu = new Map<number, ZoneLedger>();
  for (const { id, cacheGroups = [] } of machine) {
    for (const group of cacheGroups) {
      const ledger = new ZoneLedger("L3CacheGroup", String(group.id));
      add(ledger.capacity, "cpu", BigInt(group.cpus.length));
      ledger.attributes.push({ name: CPU_LISTS, value: cpuListText(group.cpus) });
      nodes.get(id)!.children.push(ledger);
      for (const cpu of group.cpus) byCpu.set(cpu, ledger);
    }
  }
  return byCpu;
}

function enterCpus(
  { nodes, problems }: ZoneTree,
  machine: Machine,
  allocatable: readonly number[],
  consumers: readonly { consumer: string; cpus: readonly number[] }[],
): void {
  const groups = enterCacheGroups(machine, nodes);
  const nodeOf = new Map(machine.flatMap(({ id, cpus }) => cpus.map((cpu) => [cpu, nodes.get(id)!])));
  const place = (cpus: readonly number[], onCpu: (ledger: ZoneLedger) => void) => {
    // Each CPU counts once per pod. The static policy never reuses a sidecar's CPUs.
    for (const cpu of new Set(cpus)) {
      const ledger = nodeOf.get(cpu);
      const group = groups.get(cpu);
      if (group) onCpu(group);
      if (ledger) onCpu(ledger);
      else problems.add(`CPU ${cpu} is not online`);
    }
  };
  // An empty list means that the kubelet assigns no exclusive CPUs.
  if (allocatable.length > 0) {
    for (const ledger of [...nodes.values(), ...groups.values()]) add(ledger.allocatable, "cpu", 0n);
  }
  place(allocatable, (ledger) => add(ledger.allocatable, "cpu", 1n));
  for (const { consumer, cpus } of consumers) place(cpus, (ledger) => ledger.hold(consumer, "cpu", 1n));
}

// Nodes without CPUs belong to no socket and are placed beside the sockets.
function underSockets(machine: Machine, nodes: ReadonlyMap<number, ZoneLedger>): ZoneLedger[] {
  const sockets = new Map<number, ZoneLedger>();
  const apart: ZoneLedger[] = [];
  for (const { id, socket } of machine) {
    const ledger = nodes.get(id)!;
    if (socket === undefined) {
      apart.push(ledger);
      continue;
    }
    const parent = sockets.get(socket) ?? new ZoneLedger("Socket", String(socket));
    sockets.set(socket, parent);
    parent.children.push(ledger);
  }
  return [...sockets.values(), ...apart];
}
