import { request } from "../world/status.ts";
import type { Rule } from "./rule.ts";

const OUTAGE_MS = 80_000;

/** Rules that end the calm. They come after all others. */
export const outage: readonly Rule[] = [
  {
    promise: "While the API server refuses every request, a health check fails.",
    // Takes nearly as long as the calm, so not in each world.
    atRest: async (world) => {
      if (world.seed % 4 !== 0) return [];
      const { api, machine } = world;
      api.faults = { of: () => ({ status: 500, headers: {}, body: {} }) };
      api.process.run(() => api.server.cutWatches());
      await machine.scheduler.run(machine.scheduler.now + OUTAGE_MS);
      const { status } = await request(world, "/readyz");
      return status === 503 ? [] : [`/readyz: ${status} after ${OUTAGE_MS / 1_000} s`];
    },
  },
];
