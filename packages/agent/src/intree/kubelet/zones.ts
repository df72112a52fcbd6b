import { compareText, formatQuantity, quantityOf } from "@nodekeeper/core/lib";
import type { Problems } from "./problems.ts";

/** Quantities by resource name. */
export type ResourceList = Record<string, string>;

/** A pod's allocation in a zone. */
export interface Allocation {
  /** "namespace/name/uid" */
  consumer: string;
  requests: ResourceList;
}

export interface Attribute {
  name: string;
  value: string;
}

/** Relation of a zone to another one at the same level. */
export interface Sibling {
  type: string;
  name: string;
}

/**
 * A topology zone of the CustomNodeResource, with the fields of katalyst's `node.katalyst.kubewharf.io/v1alpha1` that
 * are used.
 */
export interface TopologyZone {
  /** "Socket", "Numa", "L3CacheGroup", "DRADevice", or another type of device such as "GPU". */
  type: string;
  name: string;
  resources: { capacity?: ResourceList; allocatable?: ResourceList };
  attributes?: Attribute[];
  siblings?: Sibling[];
  allocations?: Allocation[];
  children?: TopologyZone[];
}

type Amounts = Map<string, bigint>;

/** The zones of NUMA nodes by ID, which receive what the kubelet reports, and the problems of its response. */
export interface ZoneTree {
  readonly nodes: ReadonlyMap<number, ZoneLedger>;
  readonly problems: Problems;
}

/** Accumulates a zone's resources and allocations. */
export class ZoneLedger {
  readonly type: string;
  readonly name: string;
  readonly capacity: Amounts = new Map();
  readonly allocatable: Amounts = new Map();
  readonly children: ZoneLedger[] = [];
  readonly attributes: Attribute[] = [];
  readonly siblings: Sibling[] = [];
  readonly #held = new Map<string, Amounts>();

  constructor(type: string, name: string) {
    this.type = type;
    this.name = name;
  }

  /** Adds an amount to a pod's allocation in this zone. */
  hold(consumer: string, resource: string, amount: bigint): void {
    const amounts = this.#held.get(consumer) ?? new Map();
    this.#held.set(consumer, amounts);
    add(amounts, resource, amount);
  }

  /** Returns the zone with its children, independent of the order of additions. */
  zone(): TopologyZone {
    const allocations = [...this.#held]
      .map(([consumer, amounts]) => ({ consumer, requests: resourceList(amounts) }))
      .sort((a, b) => compareText(a.consumer, b.consumer));
    const children = zonesOf(this.children);
    return {
      type: this.type,
      name: this.name,
      resources: {
        ...(this.capacity.size > 0 ? { capacity: resourceList(this.capacity) } : {}),
        ...(this.allocatable.size > 0 ? { allocatable: resourceList(this.allocatable) } : {}),
      },
      ...(this.attributes.length > 0 ? { attributes: this.attributes } : {}),
      ...(this.siblings.length > 0 ? { siblings: this.siblings } : {}),
      ...(allocations.length > 0 ? { allocations } : {}),
      ...(children.length > 0 ? { children } : {}),
    };
  }
}

/** Returns the zones of ledgers, sorted by type and name. Numeric names are sorted as numbers. */
export function zonesOf(ledgers: readonly ZoneLedger[]): TopologyZone[] {
  return [...ledgers]
    .sort((a, b) => compareText(a.type, b.type) || compareNames(a.name, b.name))
    .map((ledger) => ledger.zone());
}

export function add(amounts: Amounts, resource: string, amount: bigint): void {
  amounts.set(resource, (amounts.get(resource) ?? 0n) + amount);
}

/** Returns whether a resource is measured in bytes. */
function isMemory(resource: string): boolean {
  return resource === "memory" || resource.startsWith("hugepages-");
}

function resourceList(amounts: Amounts): ResourceList {
  const entries = [...amounts].sort(([a], [b]) => compareText(a, b));
  return Object.fromEntries(
    entries.map(([resource, amount]) => {
      const format = isMemory(resource) ? "BinarySI" : "DecimalSI";
      return [resource, formatQuantity(quantityOf(amount, format))];
    }),
  );
}

const NUMBER = /^\d{1,15}$/;

function compareNames(a: string, b: string): number {
  if (NUMBER.test(a) && NUMBER.test(b)) return Number(a) - Number(b) || compareText(a, b);
  return compareText(a, b);
}
