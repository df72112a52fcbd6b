import { Census } from "../machine/census.ts";
import { Churn } from "../world/churn.ts";
import { request } from "../world/status.ts";
import type { World } from "../world/world.ts";
import { endsBy } from "./endings.ts";
import { RequestCount } from "./requests.ts";
import type { Rule } from "./rule.ts";

// One-time effects, such as the first request of each kind and a pod's first event, precede the first count.
const WARM_UP_MS = 30_000;
const CHURN_MS = 150_000;
// Until plugins' grace period, transitions and the wiping of drivers' slices have ended.
const SETTLE_MS = 120_000;

// Tolerance: churn does not end exactly as it began. Each kind of change happens more often than this.
const SLACK = 10;
const SLACK_SHARE = 0.1;

/** Most that is held at places that a constant or a setting bounds, instead of what the node has. */
const constants: readonly { place: RegExp; most: number; source: string }[] = [
  { place: /^lifecycle\/event-ring\.ts #unpacked$/, most: 1_023, source: "MOST_UNPACKED" },
  {
    place: /^lifecycle\/event-ring\.ts #packed$/,
    most: 3,
    source: "lifecycle.logCapacity / PACKED_TOGETHER",
  },
  { place: /^server\/watch-answers\.ts #(plain|withStatus)$/, most: 256, source: "MOST_ENCODED" },
  { place: /^eviction\/readings\.ts #rounds$/, most: 120, source: "MOST_ROUNDS" },
  { place: /^eviction\/signal-history\.ts /, most: 64, source: "MOST_SIGNALS" },
  { place: /^eviction\/ask\/call-deadline\.ts /, most: 400, source: "REMEMBERED_ANSWERS of each call" },
  { place: /^plugins\/exchange-log\.ts #durations$/, most: 900, source: "MOST_DURATIONS of each plugin" },
  { place: /^eviction\/records\/pod-history\.ts #aliases$/, most: 40, source: "MOST_ALIASES_LEFT and pods" },
  { place: /^eviction\/records\/records\.ts basePods$/, most: 40, source: "pods of one round" },
  { place: /^runtime\/known-items\.ts #known$/, most: 300, source: "2 * (2 * items + MAX_SPARE)" },
];

export const bounds: readonly Rule[] = [
  {
    promise: "What the agent keeps is bounded by what the node has, and its requests by what changes.",
    atRest: async (world) => {
      if (!endsBy(world, "churn")) return [];
      const { agent } = world;
      const census = new Census();
      agent.census = census;
      agent.stop();
      await rest(world);
      const churn = new Churn(world);
      await churn.warmUp(WARM_UP_MS);
      await rest(world);
      const before = await held(world, census);
      const requests = new RequestCount(world, churn);
      await churn.run(CHURN_MS);
      await rest(world);
      const tooMany = requests.tooMany();
      const after = await held(world, census);
      return [
        ...tooMany,
        ...[...after].flatMap(([place, size]) => grown(place, before.get(place) ?? 0, size)),
      ];
    },
  },
];

/** Returns a violation if a place holds more than its bound. */
function grown(place: string, before: number, after: number): string[] {
  const bound = constants.find((each) => each.place.test(place));
  const most = bound?.most ?? Math.floor(before * (1 + SLACK_SHARE) + SLACK);
  return after <= most ? [] : [`${place}: ${after} after ${before}, at most ${most}`];
}

/** Returns what the agent holds, by place. */
async function held(world: World, census: Census): Promise<ReadonlyMap<string, number>> {
  const { body } = await request(world, "/metrics");
  const series = body.split("\n").filter((line) => !/^(#|$|\w+_bucket\b)/.test(line));
  const byName = Map.groupBy(series, (line) => `series of ${/^\w+/.exec(line)?.[0]}`);
  return new Map([
    ...census.take(),
    ["open handles", world.agent.process?.handles ?? 0],
    ...[...byName].map(([name, { length }]) => [name, length] as const),
  ]);
}

async function rest({ machine, evictionPlugins, host }: World): Promise<void> {
  for (const plugin of evictionPlugins) plugin.pressure = "none";
  machine.init.run(() => host.relieve());
  await machine.scheduler.run(machine.scheduler.now + SETTLE_MS);
}
