import type { KubeObject } from "@nodekeeper/core/kube";
import { compareText, parseQuantity, type Quantity } from "@nodekeeper/core/lib";
import { type Counters, type Device, decodeSpec, type SliceSpec, type SliceVersion } from "../index.ts";

/** How kube-scheduler treats one pool. */
export interface PoolVerdict {
  driver: string;
  pool: string;
  /** Nothing is allocated from `incomplete` and `invalid` pools. */
  state: "complete" | "incomplete" | "invalid";
  /** Why it is not complete. */
  reason?: string;
  /** The newest generation. */
  generation: number;
}

/** What kube-scheduler could allocate, considering each device alone. */
export interface Allocatable {
  /** Names in the order of the scheduler: by pool, then by the name of the slice. */
  devices: string[];
  pools: PoolVerdict[];
}

/**
 * The test oracle for published slices: returns the devices of a node that kube-scheduler would allocate from these
 * ResourceSlices, by the rules of the structured allocator (k8s.io/dynamic-resource-allocation, `GatherPools` and the
 * checks of a single device):
 *
 * 1. Only a pool's slices of the newest generation count.
 * 2. Nothing is allocated from a pool unless it has as many slices as each of them announces.
 * 3. Nothing is allocated from a pool with a duplicated device or counter set, or with a device that consumes counters
 *    that the pool does not have.
 * 4. A device with a NoSchedule or NoExecute taint is only allocated to a claim that tolerates it. A device that
 *    consumes more than its counter set has is never allocated.
 *
 * Slices of v1alpha2 have no pools: every instance counts.
 */
export function allocatable(
  slices: readonly KubeObject[],
  nodeName: string,
  { toleratesTaints = false }: { toleratesTaints?: boolean } = {},
): Allocatable {
  const answer: Allocatable = { devices: [], pools: [] };
  const specs = slices
    .toSorted((a, b) => compareText(a.metadata.name ?? "", b.metadata.name ?? ""))
    .map((object) => specOf(object))
    .filter((spec) => isUsableFrom(spec, nodeName));
  const pools = Map.groupBy(specs, ({ driver, pool }) => JSON.stringify([driver, pool.name]));
  for (const key of [...pools.keys()].sort(compareText)) {
    const { verdict, devices } = judge(pools.get(key)!, toleratesTaints);
    answer.pools.push(verdict);
    answer.devices.push(...devices.map(({ name }) => name));
  }
  return answer;
}

// Returns whether devices of a slice may be usable from a node. Does not evaluate node selectors and per-device
// nodes: a slice with either counts as usable.
function isUsableFrom(spec: SliceSpec, nodeName: string): boolean {
  if (spec.nodeName !== undefined) return spec.nodeName === nodeName;
  return spec.allNodes === true || spec.nodeSelector !== undefined || spec.perDeviceNodeSelection === true;
}

function judge(
  specs: readonly SliceSpec[],
  toleratesTaints: boolean,
): { verdict: PoolVerdict; devices: Device[] } {
  const generation = Math.max(...specs.map(({ pool }) => pool.generation));
  const newest = specs.filter(({ pool }) => pool.generation === generation);
  const { driver, pool } = newest[0]!;
  const common = { driver, pool: pool.name, generation };
  const refuse = (state: "incomplete" | "invalid", reason: string) => ({
    verdict: { ...common, state, reason },
    devices: [],
  });
  const wrong = newest.find((spec) => spec.pool.resourceSliceCount !== newest.length);
  if (wrong)
    return refuse("incomplete", `${newest.length} slices of ${wrong.pool.resourceSliceCount} are there`);

  const sets = new Map<string, Counters>();
  for (const { name, counters } of newest.flatMap(({ sharedCounters = [] }) => sharedCounters)) {
    if (sets.has(name)) return refuse("invalid", `counter set ${name} is duplicated`);
    sets.set(name, counters);
  }
  const devices = newest.flatMap((spec) => spec.devices ?? []);
  const names = new Set<string>();
  for (const { name, consumesCounters = [] } of devices) {
    if (names.has(name)) return refuse("invalid", `device ${name} is duplicated`);
    names.add(name);
    for (const { counterSet, counters } of consumesCounters) {
      const unknown = Object.keys(counters).find((counter) => !sets.get(counterSet)?.[counter]);
      if (unknown) return refuse("invalid", `device ${name} consumes unknown ${counterSet}/${unknown}`);
    }
  }
  return {
    verdict: { ...common, state: "complete" },
    devices: devices.filter((device) => (toleratesTaints || !repels(device)) && fits(device, sets)),
  };
}

function repels({ taints = [] }: Device): boolean {
  return taints.some(({ effect }) => effect === "NoSchedule" || effect === "NoExecute");
}

function fits({ consumesCounters = [] }: Device, sets: ReadonlyMap<string, Counters>): boolean {
  return consumesCounters.every(({ counterSet, counters }) =>
    Object.entries(counters).every(([name, { value }]) => {
      const available = sets.get(counterSet)![name]!.value;
      return amount(parseQuantity(value)) <= amount(parseQuantity(available));
    }),
  );
}

function amount({ nano }: Quantity): bigint {
  return nano;
}

function specOf(object: KubeObject): SliceSpec {
  const version = object.apiVersion?.split("/")[1];
  if (version !== "v1alpha2") return decodeSpec(version as SliceVersion, object);
  const { instances = [] } = (object.namedResources ?? {}) as { instances?: { name: string }[] };
  return {
    driver: String(object.driverName),
    nodeName: String(object.nodeName),
    // One pool per slice, because nothing relates the slices.
    pool: { name: object.metadata.name ?? "", generation: 1, resourceSliceCount: 1 },
    devices: instances.map(({ name }) => ({ name })),
  };
}
