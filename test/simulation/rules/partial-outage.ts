import type { EvictionActor } from "../world/eviction-plugins.ts";
import { isDryRun } from "../world/settings.ts";
import { failing } from "../world/status.ts";
import type { World } from "../world/world.ts";
import { type Ending, endsBy } from "./endings.ts";
import { isExpected } from "./rest.ts";
import type { Rule } from "./rule.ts";

// A check fails if what it is about has been late for a minute.
const OUTAGE_MS = 80_000;
// Longest delay before a write is tried again, and the write itself.
const RECOVERY_MS = 80_000;

/** Requests that are refused, what the agent then can't do, and the check that is about it. */
interface PartialOutage {
  ending: Ending;
  check: string;
  refuses: (request: { method: string; path: string }) => boolean;
  /** Changes what is to be written. Returns false if this world has nothing of the kind. */
  change: (world: World) => boolean;
}

const partialOutages: readonly PartialOutage[] = [
  {
    ending: "refusedTaints",
    check: "EvictionTaintsPublished",
    refuses: ({ method, path }) => method === "PATCH" && path.startsWith("/api/v1/nodes/"),
    change: (world) => {
      const plugin = withoutCondition(world);
      if (!plugin) return false;
      plugin.hasCondition = true;
      plugin.pressure = "soft";
      return true;
    },
  },
  {
    ending: "refusedReports",
    check: "ReporterPublished",
    refuses: ({ method, path }) => method !== "GET" && path.includes("/customnoderesources/"),
    change: ({ reporters: [reporter] }) => {
      reporter?.report();
      return reporter !== undefined;
    },
  },
  {
    ending: "refusedSlices",
    check: "DeviceSlicesPublished",
    refuses: ({ method, path }) => method !== "GET" && path.includes("/resourceslices"),
    change: ({ devices }) => {
      // The check fails if no driver's slices are written.
      for (const driver of devices.installed) driver.grow();
      return devices.installed.length > 0;
    },
  },
];

const refusal = { status: 500, headers: {}, body: {} };

/** Rules that end the calm. */
export const partialOutage: readonly Rule[] = [
  {
    promise:
      "While what changed can't be written, the health check that is about it fails, and not when it is written.",
    atRest: async (world) => {
      const partial = partialOutages.find(({ ending }) => endsBy(world, ending));
      if (!partial?.change(world)) return [];
      const { api, machine } = world;
      api.faults = { of: (each) => (partial.refuses(each) ? refusal : undefined) };
      await machine.scheduler.run(machine.scheduler.now + OUTAGE_MS);
      const during = await failing(world);
      api.faults = undefined;
      await machine.scheduler.run(machine.scheduler.now + RECOVERY_MS);
      const after = (await failing(world)).filter((line) => !isExpected(line, world));
      return [
        ...(during.some((line) => line.includes(partial.check))
          ? []
          : [`${partial.check} does not fail after ${OUTAGE_MS / 1_000} s: ${during.join("; ")}`]),
        ...after.map((line) => `${RECOVERY_MS / 1_000} s after the outage: ${line}`),
      ];
    },
  },
];

/** Returns a plugin that reports no condition now, and whose conditions become taints. */
export function withoutCondition({ evictionPlugins, operator }: World): EvictionActor | undefined {
  return evictionPlugins.find(
    ({ name, hasCondition, pressure }) =>
      (!hasCondition || pressure === "none") && !isDryRun(operator.settings, name),
  );
}
