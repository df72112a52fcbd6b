import { NODE } from "../world/api-server.ts";
import type { Event } from "../world/history.ts";
import { request } from "../world/status.ts";
import type { World } from "../world/world.ts";
import { endsBy } from "./endings.ts";
import { withoutCondition } from "./partial-outage.ts";
import { watchesOf } from "./requests.ts";
import type { Rule } from "./rule.ts";

// A round of a longer period may have begun, and the write takes a moment.
const MARGIN_MS = 2_000;
// Until evictions, cooldowns and transitions have ended.
const SETTLE_MS = 60_000;
const MINUTE_MS = 60_000;

export const quiet: readonly Rule[] = [
  {
    promise:
      "A condition's taint is on the Node one round after it is reported, stays for its transition period, and is gone one round later.",
    atRest: async (world) => {
      const plugin = withoutCondition(world);
      if (!endsBy(world, "oneCondition") || !plugin) return [];
      const { machine, operator } = world;
      const { taintPrefix, syncPeriodMs, transitionS } = operator.settings;
      const key = `${taintPrefix}/${plugin.condition.name}`;
      const roundMs = 2 * syncPeriodMs + MARGIN_MS;
      const transitionMs = transitionS * 1_000 + roundMs;
      plugin.hasCondition = true;
      plugin.pressure = "soft";
      await machine.scheduler.run(machine.scheduler.now + roundMs);
      const isSet = taintsOf(world).includes(key);
      plugin.pressure = "none";
      const endsAt = machine.scheduler.now + transitionMs;
      // It was last reported up to a round ago.
      await machine.scheduler.run(endsAt - 2 * roundMs);
      const isKept = taintsOf(world).includes(key);
      await machine.scheduler.run(endsAt);
      const isLeft = taintsOf(world).includes(key);
      return [
        ...(isSet ? [] : [`${key} is not set after ${roundMs / 1_000} s`]),
        ...(isKept ? [] : [`${key} is gone before ${transitionS} s`]),
        ...(isLeft ? [`${key} is left after ${transitionMs / 1_000} s`] : []),
      ];
    },
  },
  {
    promise:
      "An agent with nothing to do sends no writes, works once in each period, and keeps no work in queues.",
    atRest: async (world) => {
      if (!endsBy(world, "idleness")) return [];
      const { machine, evictionPlugins, host, history, api, agent, operator } = world;
      for (const plugin of evictionPlugins) plugin.pressure = "none";
      machine.init.run(() => host.relieve());
      await machine.scheduler.run(machine.scheduler.now + SETTLE_MS);
      const before = {
        calls: history.pluginCalls.length,
        requests: api.requests,
        steps: agent.process!.steps,
        events: history.events.length,
      };
      const writes = history.writes.length;
      await machine.scheduler.run(machine.scheduler.now + MINUTE_MS);
      // Dry runs count as requests: what the server stores is asked again whenever a watch has ended.
      const written = history.writes
        .slice(writes)
        .filter(({ client, isDryRun }) => client === "nodekeeper" && !isDryRun);
      const rounds = Math.ceil(MINUTE_MS / operator.settings.syncPeriodMs) + 1;
      const { body } = await request(world, "/metrics");
      const used = [
        ["calls of plugins", history.pluginCalls.length - before.calls, 2 * rounds * evictionPlugins.length],
        ["writes", written.length, 0],
        // A watch that ends is opened again.
        ["requests", api.requests - before.requests, watchesOf(world)],
        [
          "wake-ups",
          agent.process!.steps - before.steps,
          mostSteps(world, rounds, history.events.slice(before.events)),
        ],
        ["keys in queues", gaugeOf(body, "nodekeeper_workqueue_depth"), 0],
      ] as const;
      return used
        .filter(([, count, most]) => count > most)
        .map(([what, count, most]) => `${what} in a minute: ${count}, at most ${most}`);
    },
  },
];

/**
 * Returns the maximum number of wake-ups of an idle agent per minute: timers that fire, messages that arrive, and file
 * operations that complete. The sum is 10 to 20 % above the measured value.
 *
 * - Always: thresholds are sampled four times a second (240). Pods are listed every second, in two calls (180). The
 *   runtime, its slowness and the API socket are checked every 2 s (120). The CDI directory, the plugin directories,
 *   the configuration and the policies are checked every 5 to 10 s (100).
 * - Round: its timer, and the responses of each eviction plugin to GetEvictPods and ThresholdMet.
 * - Plugin: every 5 s its process and socket are probed, and a reporter is polled; every 10 s its file is checked.
 * - Driver: its socket for the kubelet is checked every 2 s, and the connection to the driver every 1.5 s.
 * - Consumer: its watch receives a bookmark every 10 s.
 * - Kubelet call for a claim that can't be prepared: the call, and the read of the claim.
 * - Bookmark of the API server: the message, and the turn in which it is handled.
 * - Host: 25 to 30 completed file operations every 4 s.
 *
 * @param rounds number of eviction rounds
 * @param events events of this minute
 */
function mostSteps(world: World, rounds: number, events: readonly Event[]): number {
  const { reporters, evictionPlugins, devices, consumers, host, api } = world;
  const plugins = reporters.length + evictionPlugins.length + devices.drivers.length;
  const ofKubelet = events.filter(({ who }) => who === "kubelet").length;
  // Each claim that waits has a watch.
  const watches = watchesOf(world) + (devices.binding?.scheduler.allocated.length ?? 0);
  const bookmarks = watches * (MINUTE_MS / api.bookmarkIntervalMs);
  return (
    700 +
    (2 + 2 * evictionPlugins.length) * rounds +
    45 * plugins +
    170 * devices.drivers.length +
    15 * consumers.length +
    5 * ofKubelet +
    2 * bookmarks +
    (host.isWatched ? 450 : 0)
  );
}

function taintsOf({ api }: World): string[] {
  const { spec } = api.store.get("nodes", NODE) as { spec?: { taints?: { key: string }[] } };
  return (spec?.taints ?? []).map(({ key }) => key);
}

/** Returns the sum of a gauge's samples. */
function gaugeOf(page: string, name: string): number {
  const samples = page.matchAll(new RegExp(`^${name}(?:{.*})? (\\S+)$`, "gm"));
  return [...samples].reduce((sum, [, value]) => sum + Number(value), 0);
}
