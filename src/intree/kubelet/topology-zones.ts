import type { KubeletAnswer, PodHolding } from "./answer.ts";
import { enterDevices } from "./device-zones.ts";
import type { Machine, MachineNode } from "./machine.ts";
import { enterMemory } from "./memory-zones.ts";
import { Problems } from "./problems.ts";
import { add, type TopologyZone, ZoneLedger, zonesOf } from "./zones.ts";

export interface ZoneInput {
  readonly machine: Machine;
  readonly answer: KubeletAnswer;
  /** Zone types by resource name: devices of other resources are counted on their NUMA nodes alone. */
  readonly deviceZones: ReadonlyMap<string, string>;
  /** The UID of a pod that runs; undefined for one that does not, or of which nothing is known yet. */
  readonly podUid: (namespace: string, name: string) => string | undefined;
}

export interface ZoneOutput {
  readonly zones: TopologyZone[];
  /** "namespace/name" of pods that hold something and whose UID is not known: their holdings are not reported. */
  readonly unknownPods: string[];
  /** What of the answer could not be reported, in words. */
  readonly problems: string[];
}

/**
 * The kubelet's answer as zones: sockets, their NUMA nodes, their devices. What is not known is absent, never zero. The
 * order of pods, containers and devices in the answer makes no difference.
 */
export function topologyZones({ machine, answer, deviceZones, podUid }: ZoneInput): ZoneOutput {
  const problems = new Problems();
  const nodes = new Map(machine.map((node) => [node.id, nodeLedger(node)]));
  const unknownPods = new Set<string>();
  const holders = answer.pods.filter(holdsAnything).map((pod) => {
    const uid = podUid(pod.namespace, pod.name);
    if (uid === undefined) unknownPods.add(`${pod.namespace}/${pod.name}`);
    return { ...pod, consumer: uid === undefined ? undefined : `${pod.namespace}/${pod.name}/${uid}` };
  });
  const consumers = holders.flatMap((holder) =>
    holder.consumer === undefined ? [] : [{ ...holder, consumer: holder.consumer }],
  );

  enterCpus(machine, nodes, answer.allocatable.cpus, consumers, problems);
  enterMemory(nodes, answer.allocatable, consumers, problems);
  const apart = enterDevices(nodes, answer.allocatable, holders, deviceZones, problems);
  return {
    zones: zonesOf([...underSockets(machine, nodes), ...apart]),
    unknownPods: [...unknownPods].sort(),
    problems: problems.list(),
  };
}

function holdsAnything({ cpus, memory, devices }: PodHolding): boolean {
  return cpus.length > 0 || memory.length > 0 || devices.length > 0;
}

function nodeLedger({ id, cpus, memoryBytes }: MachineNode): ZoneLedger {
  const ledger = new ZoneLedger("Numa", String(id));
  add(ledger.capacity, "cpu", BigInt(cpus.length));
  if (memoryBytes !== undefined) add(ledger.capacity, "memory", BigInt(memoryBytes));
  return ledger;
}

function enterCpus(
  machine: Machine,
  nodes: ReadonlyMap<number, ZoneLedger>,
  allocatable: readonly number[],
  consumers: readonly { consumer: string; cpus: readonly number[] }[],
  problems: Problems,
): void {
  const nodeOf = new Map(machine.flatMap(({ id, cpus }) => cpus.map((cpu) => [cpu, nodes.get(id)!])));
  const place = (cpus: readonly number[], onCpu: (ledger: ZoneLedger) => void) => {
    // A sidecar and the containers after it may name a CPU twice.
    for (const cpu of new Set(cpus)) {
      const ledger = nodeOf.get(cpu);
      if (ledger) onCpu(ledger);
      else problems.add(`CPU ${cpu} is not online`);
    }
  };
  // No CPU at all means that the kubelet gives none to containers for themselves.
  if (allocatable.length > 0) for (const ledger of nodes.values()) add(ledger.allocatable, "cpu", 0n);
  place(allocatable, (ledger) => add(ledger.allocatable, "cpu", 1n));
  for (const { consumer, cpus } of consumers) place(cpus, (ledger) => ledger.hold(consumer, "cpu", 1n));
}

// Nodes without CPUs belong to no socket and stand beside them.
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
