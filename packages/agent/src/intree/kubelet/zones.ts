import { formatQuantity, quantityOf } from "@nodekeeper/core/lib";

/** Amounts by resource, as the API server takes them. */
export type ResourceList = Record<string, string>;

/** What one pod holds in a zone. */
export interface Allocation {
  /** "namespace/name/uid" */
  consumer: string;
  requests: ResourceList;
}

export interface Attribute {
  name: string;
  value: string;
}

/** How a zone stands to another one of its level. */
export interface Sibling {
  type: string;
  name: string;
  attributes: Attribute[];
}

/** A zone of the CustomNodeResource, in the fields of katalyst's `node.katalyst.kubewharf.io/v1alpha1` that we set. */
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

/** Adds up what a zone has and who holds it. */
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

  /** What a pod holds here, added to what it holds already. */
  hold(consumer: string, resource: string, amount: bigint): void {
    const amounts = this.#held.get(consumer) ?? new Map();
    this.#held.set(consumer, amounts);
    add(amounts, resource, amount);
  }

  /** The zone with its children; the same whatever the order in which things were added. */
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

/** The zones of ledgers, sorted by type and name; names that are numbers as numbers. */
export function zonesOf(ledgers: readonly ZoneLedger[]): TopologyZone[] {
  return [...ledgers]
    .sort((a, b) => compareText(a.type, b.type) || compareNames(a.name, b.name))
    .map((ledger) => ledger.zone());
}

/** Adds to the amount of a resource. */
export function add(amounts: Amounts, resource: string, amount: bigint): void {
  amounts.set(resource, (amounts.get(resource) ?? 0n) + amount);
}

/** Whether a resource is counted in bytes. */
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

// By code units: the order must not depend on a locale.
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

const NUMBER = /^\d{1,15}$/;

function compareNames(a: string, b: string): number {
  if (NUMBER.test(a) && NUMBER.test(b)) return Number(a) - Number(b) || compareText(a, b);
  return compareText(a, b);
}
