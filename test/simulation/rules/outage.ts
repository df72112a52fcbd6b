import { request } from "../world/status.ts";
import type { World } from "../world/world.ts";
import { type Ending, endsBy } from "./endings.ts";
import type { Rule } from "./rule.ts";

const OUTAGE_MS = 80_000;

/** Outages of the API server that a health check must notice. */
const outages: readonly { ending: Ending; promise: string; begin(api: World["api"]): void }[] = [
  {
    ending: "refusals",
    promise: "While the API server refuses every request, a health check fails.",
    begin(api) {
      api.faults = { of: () => ({ status: 500, headers: {}, body: {} }) };
    },
  },
  {
    ending: "endedWatches",
    promise: "While the API server ends each watch at once, a health check fails.",
    begin(api) {
      api.endsWatches = true;
      // A list tells what the watches do not.
      api.faults = {
        of: ({ method, query }) => (method === "GET" && !query.has("watch") ? REFUSED : undefined),
      };
    },
  },
  {
    ending: "expiredWatches",
    promise: "While versions of watches have expired, and lists are refused, a health check fails.",
    begin(api) {
      const expired = {
        type: "ERROR",
        object: { kind: "Status", code: 410, reason: "Expired", message: "old" },
      };
      const events = { status: 200, headers: {}, body: `${JSON.stringify(expired)}\n` };
      api.faults = {
        of: ({ method, query }) => (method === "GET" ? (query.has("watch") ? events : REFUSED) : undefined),
      };
    },
  },
];

const REFUSED = { status: 500, headers: {}, body: {} };

/** Rules that end the calm. They come after all others. */
export const outage: readonly Rule[] = outages.map(({ ending, promise, begin }) => ({
  promise,
  atRest: async (world) => {
    if (!endsBy(world, ending)) return [];
    const { api, machine } = world;
    begin(api);
    api.process.run(() => api.server.cutWatches());
    await machine.scheduler.run(machine.scheduler.now + OUTAGE_MS);
    const { status } = await request(world, "/readyz");
    return status === 503 ? [] : [`/readyz: ${status} after ${OUTAGE_MS / 1_000} s`];
  },
}));
