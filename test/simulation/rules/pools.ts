import { allocatable } from "../../../packages/agent/src/devices/testing/allocatable.ts";
import { NODE } from "../world/api-server.ts";
import { OTHER_NODE } from "../world/other-node.ts";
import type { SharedPools } from "../world/shared-pools.ts";
import type { World } from "../world/world.ts";
import type { Rule } from "./rule.ts";

// From the end of the holder to the publication of the next one: after a kill, and after a proper end.
const REPLACED_MS = 125_000;
const HANDED_OVER_MS = 45_000;
// Polling the driver (1 s), retries of the writes that were refused for `REFUSED_MS`, and deleting the Lease.
const REMOVED_MS = 40_000;
const REFUSED_MS = 5_000;
// An agent whose driver has no such pools looks every 3.75 to 6.25 minutes, and takes the Lease after 10.
const ABANDONED_LEAST_MS = 600_000;
const ABANDONED_MOST_MS = 23 * 60_000 + REMOVED_MS;
const STEP_MS = 500;
// How long the Lease can't be renewed, and how often devices change meanwhile.
const UNRENEWED_MS = 60_000;
const CHANGES_MS = 4_000;
// How long after the end of a holder the wall clock is stepped, and how far.
const STEPPED_MS = 15_000;
const WALL_STEP_MS = 3_600_000;

const nodes = [NODE, OTHER_NODE] as const;

/** Ends that come after the calm, one in each world, by its seed. */
const endings = ["killed", "stopped", "uninstalled", "withdrawn", "abandoned", "refused"] as const;
type Ending = (typeof endings)[number];

function endsBy({ seed }: World, ending: Ending): boolean {
  return endings[Math.floor(seed / 4) % endings.length] === ending;
}

/** Rules about pools beyond the node. Those that end the calm are the last: the agent of one node is no longer there. */
export const pools: readonly Rule[] = [
  {
    promise: "After quiet, a running agent whose driver reports pools beyond the node has their Lease.",
    atRest: ({ pools: shared }) => {
      if (!shared) return [];
      const { holder } = shared;
      if (!holder) return [`no agent has ${JSON.stringify(shared.lease?.spec)}`];
      return shared.driverOn(holder).shared.length > 0 ? [] : [`${holder}, whose driver reports none`];
    },
  },
  {
    promise:
      "The scheduler can allocate exactly the healthy devices beyond the node that the driver of the Lease's holder last sent.",
    atRest: ({ pools: shared }) => (shared ? differences(shared, shared.holder) : []),
  },
  {
    promise: "The scheduler can allocate exactly the devices of each node that its driver last sent.",
    atRest: ({ pools: shared }) =>
      (shared ? nodes : []).flatMap((node) => {
        const { local, isWanted } = shared!.driverOn(node);
        const { devices } = allocatable(shared!.localSlices, node);
        return differ(isWanted ? local : [], devices).map((what) => `on ${node}: ${what}`);
      }),
  },
  {
    promise: "Within two minutes after a holder of a Lease was killed, the next one publishes.",
    atRest: (world) =>
      replaced(world, "killed", REPLACED_MS, (node) => {
        remove(world, node, true);
        // A step of the wall clock must not affect how long the others wait.
        const { machine } = world;
        machine.scheduler.after(STEPPED_MS, () => {
          machine.wallOffset += WALL_STEP_MS;
        });
      }),
  },
  {
    promise: "Within half a minute after a holder of a Lease ended, the next one publishes.",
    atRest: (world) => replaced(world, "stopped", HANDED_OVER_MS, (node) => remove(world, node, false)),
  },
  {
    promise: "A holder of a Lease whose driver is away steps down, and its slices stay.",
    atRest: (world) =>
      replaced(world, "uninstalled", HANDED_OVER_MS, (node) => world.pools!.driverOn(node).toggle()),
  },
  {
    promise:
      "After a minute in which the Lease could not be renewed, the pools are published again within two minutes.",
    atRest: async (world) => {
      const shared = ofWorld(world, "refused");
      if (!shared) return [];
      const { api, machine } = world;
      api.leaseFaults = {
        of: ({ path }) => (path.includes("/leases") ? { status: 503, headers: {}, body: {} } : undefined),
      };
      // What the holder writes is judged by the rules about writes.
      for (let passed = 0; passed < UNRENEWED_MS; passed += CHANGES_MS) {
        machine.init.run(() => shared.touch());
        await machine.scheduler.run(machine.scheduler.now + CHANGES_MS);
      }
      api.leaseFaults = undefined;
      return await until(world, REPLACED_MS, () =>
        shared.holder ? differences(shared, shared.holder) : ["no agent has it"],
      );
    },
  },
  {
    promise: "Slices that no driver reports any more are removed, and then their Lease.",
    atRest: async (world) => {
      const shared = ofWorld(world, "withdrawn");
      if (!shared) return [];
      const { api, machine } = world;
      // They can't be removed at once, and the Lease stays until they are.
      api.faults = {
        of: ({ method, path }) =>
          method !== "GET" && path.includes("/resourceslices")
            ? { status: 503, headers: {}, body: {} }
            : undefined,
      };
      for (const driver of shared.drivers) driver.look("none");
      await machine.scheduler.run(machine.scheduler.now + REFUSED_MS);
      api.faults = undefined;
      return await until(world, REMOVED_MS, () => left(shared));
    },
  },
  {
    promise:
      "If the driver that reported them is gone, slices and Lease are removed 10 to 23 minutes after the last holder, by an agent with this driver.",
    atRest: async (world) => {
      const shared = ofWorld(world, "abandoned");
      const holder = shared?.holder;
      if (!shared || !holder) return [];
      const before = shared.slices.length;
      for (const driver of shared.drivers) if (driver.node !== holder) driver.look("none");
      remove(world, holder, true);
      const { scheduler } = world.machine;
      await scheduler.run(scheduler.now + ABANDONED_LEAST_MS - 10_000);
      if (shared.slices.length < before) return ["slices are removed within 10 minutes"];
      return await until(world, ABANDONED_MOST_MS - ABANDONED_LEAST_MS, () => left(shared));
    },
  },
];

/** Returns the pools of a world that ends like this, and has a driver that reports some on both nodes. */
function ofWorld(world: World, ending: Ending): SharedPools | undefined {
  const { pools: shared } = world;
  if (!shared || !endsBy(world, ending) || !shared.holder) return undefined;
  return shared.drivers.every(({ isWanted }) => isWanted) ? shared : undefined;
}

/** Ends the holder, and returns what is wrong with the next one after some time. */
async function replaced(
  world: World,
  ending: Ending,
  withinMs: number,
  end: (node: string) => void,
): Promise<string[]> {
  const shared = ofWorld(world, ending);
  const first = shared?.holder;
  if (!shared || !first || shared.drivers.some((driver) => driver.shared.length === 0)) return [];
  const next = nodes.find((node) => node !== first)!;
  const [least, expected] = [shared.driverOn(first), shared.driverOn(next)].map((driver) =>
    healthyOf(driver.shared),
  ) as [string[], string[]];
  const common = least.filter((name) => expected.includes(name));
  world.machine.init.run(() => end(first));
  let missing: string[] = [];
  const wrong = await until(world, withinMs, () => {
    if (missing.length === 0) missing = missingFrom(shared, common);
    return shared.holder === next ? differences(shared, next) : [`${shared.holder ?? "no agent"} has it`];
  });
  return [...missing.map((name) => `${name} was not allocatable for a while`), ...wrong];
}

/** Lets the world go on until nothing is wrong, or some time has passed. Returns what is wrong then. */
async function until({ machine }: World, withinMs: number, look: () => string[]): Promise<string[]> {
  const { scheduler } = machine;
  const endsAt = scheduler.now + withinMs;
  let wrong = look();
  while (wrong.length > 0 && scheduler.now < endsAt) {
    await scheduler.run(scheduler.now + STEP_MS);
    wrong = look();
  }
  return wrong;
}

/** Ends the agent of a node, and what else would go on there. */
function remove({ agent, pools: shared, machine }: World, node: string, isKilled: boolean): void {
  machine.init.run(() => {
    if (node === NODE) agent.remove(isKilled);
    else shared!.other.agent.remove(isKilled);
  });
}

function left({ slices, lease }: SharedPools): string[] {
  return [
    ...slices.map(({ metadata }) => `${metadata.name} is left`),
    ...(lease ? [`the Lease is left: ${JSON.stringify(lease.spec)}`] : []),
  ];
}

/** Returns how the pools differ from what the driver of a node reports. */
function differences(shared: SharedPools, holder: string | undefined): string[] {
  if (!holder) return [];
  const expected = healthyOf(shared.driverOn(holder).shared);
  return nodes.flatMap((node) => {
    const { devices, pools: verdicts } = allocatable(shared.slices, node);
    const reasons = verdicts.flatMap(({ pool, reason }) => (reason ? [`${pool}: ${reason}`] : []));
    return [...reasons, ...differ(expected, devices)].map((what) => `on ${node}: ${what}`);
  });
}

function missingFrom(shared: SharedPools, expected: readonly string[]): string[] {
  const { devices } = allocatable(shared.slices, NODE);
  return expected.filter((name) => !devices.includes(name));
}

function healthyOf(devices: readonly { name: string; isHealthy: boolean }[]): string[] {
  return devices.filter(({ isHealthy }) => isHealthy).map(({ name }) => name);
}

function differ(expected: readonly string[], actual: readonly string[]): string[] {
  return [
    ...expected.filter((name) => !actual.includes(name)).map((name) => `${name} is not allocatable`),
    ...actual.filter((name) => !expected.includes(name)).map((name) => `${name} is allocatable`),
  ];
}
