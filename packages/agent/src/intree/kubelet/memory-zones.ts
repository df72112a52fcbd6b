import { quote } from "@nodekeeper/core/lib";
import type { KubeletAnswer, MemoryBlock } from "./answer.ts";
import { add, type ZoneLedger, type ZoneTree } from "./zones.ts";

/** A pod with allocations and its consumer name in zones. */
export interface Consumer {
  readonly consumer: string;
  readonly memory: readonly MemoryBlock[];
}

/**
 * Adds memory and huge pages to the zones of NUMA nodes. The capacity of "memory" is the machine's and already set. The
 * capacity of huge pages is the allocatable amount, because the kubelet manages all of them.
 */
export function enterMemory(
  tree: ZoneTree,
  allocatable: KubeletAnswer["allocatable"],
  consumers: readonly Consumer[],
): void {
  const { nodes } = tree;
  for (const block of allocatable.memory) {
    const whole = onKnownNodes(tree, block);
    const [first] = whole.nodes;
    if (first === undefined) continue;
    const { allocatable: amounts, capacity } = nodes.get(first)!;
    add(amounts, block.type, block.bytes);
    if (block.type !== "memory") add(capacity, block.type, block.bytes);
  }
  const room = new RemainingMemory(nodes);
  // Blocks on a single node come first, because their placement is known; the others in an order independent of the
  // response.
  const blocks = consumers
    .flatMap(({ consumer, memory }) => memory.map((block) => ({ consumer, ...onKnownNodes(tree, block) })))
    .sort(byPlaceAndSize);
  for (const { consumer, type, bytes, nodes: on } of blocks) {
    for (const [node, part] of room.take(type, bytes, on)) nodes.get(node)!.hold(consumer, type, part);
  }
}

type PlacedBlock = MemoryBlock & { consumer: string };

function byPlaceAndSize(a: PlacedBlock, b: PlacedBlock): number {
  if (a.nodes.length !== b.nodes.length) return a.nodes.length - b.nodes.length;
  if (a.consumer !== b.consumer) return a.consumer < b.consumer ? -1 : 1;
  if (a.bytes !== b.bytes) return a.bytes < b.bytes ? -1 : 1;
  const [left, right] = [a.nodes.join(), b.nodes.join()];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

function onKnownNodes({ nodes, problems }: ZoneTree, block: MemoryBlock): MemoryBlock {
  const known = block.nodes.filter((id) => nodes.has(id));
  if (known.length < block.nodes.length || known.length === 0) {
    const where =
      block.nodes.length > 0
        ? `is on NUMA nodes ${block.nodes.join(", ")}, not all of which exist`
        : "is on no NUMA node";
    problems.add(`${quote(block.type)} ${where}`);
  }
  return { ...block, nodes: known };
}

/** Remaining capacity of each node while blocks are distributed. */
class RemainingMemory {
  readonly #nodes: ReadonlyMap<number, ZoneLedger>;
  readonly #taken = new Map<string, bigint>();

  constructor(nodes: ReadonlyMap<number, ZoneLedger>) {
    this.#nodes = nodes;
  }

  /**
   * Distributes a block. The kubelet's static memory manager policy fills the nodes of a block in the order of their
   * IDs (https://kubernetes.io/docs/tasks/administer-cluster/memory-manager/). Any excess is assigned to the last node.
   */
  take(type: string, bytes: bigint, on: readonly number[]): [node: number, part: bigint][] {
    const parts: [number, bigint][] = [];
    let rest = bytes;
    for (const [at, node] of on.entries()) {
      const free = this.#free(type, node);
      const part = at === on.length - 1 || rest <= free ? rest : free;
      if (part <= 0n) continue;
      this.#taken.set(`${node} ${type}`, (this.#taken.get(`${node} ${type}`) ?? 0n) + part);
      parts.push([node, part]);
      rest -= part;
    }
    return parts;
  }

  #free(type: string, node: number): bigint {
    const all = this.#nodes.get(node)?.allocatable.get(type) ?? 0n;
    const free = all - (this.#taken.get(`${node} ${type}`) ?? 0n);
    return free > 0n ? free : 0n;
  }
}
