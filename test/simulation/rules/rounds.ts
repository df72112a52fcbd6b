import { NODE } from "../world/api-server.ts";
import { namesOf, thresholdAsText } from "../world/eviction-plugins.ts";
import type { PluginCall } from "../world/history.ts";
import { read } from "../world/statements.ts";
import type { World } from "../world/world.ts";
import { LONGEST_CALL_MS, type RecordedRound, recordedRounds, SLACK_MS, timeOf } from "./recorded-rounds.ts";
import type { Rule } from "./rule.ts";

export const rounds: readonly Rule[] = [
  {
    promise: "What a round records as the answer of a plugin is what the plugin answered in this round.",
    atRest: async (world) => {
      // The times of rounds are those of the wall clock.
      if (world.machine.wallOffset !== 0) return [];
      const all = await recordedRounds(world);
      return all.flatMap((round) =>
        answersOf(round).flatMap(({ plugin, method, answer, isAfter }) => {
          // In-tree plugins and policies are not called by messages.
          if (!world.evictionPlugins.some(({ name }) => name === plugin)) return [];
          const at = timeOf(round, world);
          const given = callsOf(world, { plugin, method }, at, isAfter).map((call) => call.answer);
          if (given.includes(answer)) return [];
          if (nothing.includes(answer) && wasWithoutServices(world, plugin, at)) return [];
          const others = given.map((other) => (other === undefined ? "none" : `"${other}"`));
          return [`round ${round.id}: ${method} of ${plugin}: "${answer}" instead of ${others.join(" or ")}`];
        }),
      );
    },
  },
  {
    promise:
      "What an instance answered does not count in a round that is decided after another one registered.",
    atRest: async (world) => {
      const isReplaced = world.history.registrations.some(({ instance }) => instance > 1);
      if (world.machine.wallOffset !== 0 || !isReplaced) return [];
      const all = await recordedRounds(world);
      return all.flatMap((round) => outdatedAnswers(world, round));
    },
  },
  {
    promise: "At rest the agent knows the pods of its node as the API server has them.",
    atRest: async (world) => {
      const before = await unlikeApiServer(world);
      if (before.size === 0) return [];
      // A pod may come or go while the agent answers.
      await world.machine.scheduler.run(world.machine.scheduler.now + NEWS_MS);
      const after = await unlikeApiServer(world);
      return [...before].filter((difference) => after.has(difference));
    },
  },
];

// What is recorded of a plugin that does not implement a call.
const nothing = ["", thresholdAsText({ metType: "none", observedValue: null, thresholdValue: null })];

/**
 * Returns whether another process was at the plugin's socket in a round, before the agent has refused it. Until then it
 * is called: each call connects to the path that was registered (docs/plugin-authors.md).
 */
function wasWithoutServices({ history }: World, plugin: string, at: number): boolean {
  return history.withoutServices.some(
    (each) =>
      each.plugin === plugin && each.from < at + 2 * LONGEST_CALL_MS && each.to > at - 2 * LONGEST_CALL_MS,
  );
}

const NEWS_MS = 5_000;

/** Returns how the pods that the agent lists differ from those of the API server. */
async function unlikeApiServer(world: World): Promise<ReadonlySet<string>> {
  const known: { items: { name: string; leftAt: number | null }[] } = await read(
    world,
    "eviction/pods?limit=1000",
  );
  const present = new Set(known.items.filter(({ leftAt }) => leftAt === null).map(({ name }) => name));
  const actual = new Set(
    world.api.store
      .list("pods")
      .filter(({ spec }) => (spec as { nodeName?: string }).nodeName === NODE)
      .map(({ metadata }) => metadata.name!),
  );
  return new Set([
    ...[...actual].filter((name) => !present.has(name)).map((name) => `${name} is not known`),
    ...[...present].filter((name) => !actual.has(name)).map((name) => `${name} is gone, and listed`),
  ]);
}

/** Returns the answers that a round counts although another instance of the plugin had registered by then. */
function outdatedAnswers(world: World, round: RecordedRound): string[] {
  const at = timeOf(round, world);
  const given = answersOf(round).map(({ plugin, method, answer, isAfter }) => {
    const calls = callsOf(world, { plugin, method }, at, isAfter).filter((call) => call.answer === answer);
    return { plugin, method, calls };
  });
  // A round is decided after its last answer.
  const last = given.flatMap(({ calls }) => (calls.length === 1 ? (calls[0]!.answeredAt ?? at) : at));
  const decidedAt = Math.max(at, ...last);
  const isOutdated = (call: PluginCall) =>
    world.history.registrations.some(
      (other) =>
        other.plugin === call.plugin &&
        other.instance !== call.instance &&
        other.at > call.at &&
        other.at < decidedAt - SLACK_MS,
    );
  return given
    .filter(({ calls }) => calls.length > 0 && calls.every(isOutdated))
    .map(({ plugin, method, calls }) => {
      const [{ instance }] = calls as [PluginCall];
      return `round ${round.id}: ${method} of ${plugin}, which instance ${instance} answered before it was replaced`;
    });
}

function answersOf({ input: { plugins, tops } }: RecordedRound) {
  const before = plugins.flatMap(({ plugin, evictPods, threshold }) => [
    ...("answer" in evictPods
      ? [{ plugin, method: "GetEvictPods", answer: namesOf(evictPods.answer.pods.map(({ pod }) => pod)) }]
      : []),
    ...("answer" in threshold
      ? [{ plugin, method: "ThresholdMet", answer: thresholdAsText(threshold.answer) }]
      : []),
  ]);
  const after = tops.flatMap(({ plugin, top }) =>
    "answer" in top ? [{ plugin, method: "GetTopEvictionPods", answer: namesOf(top.answer.pods) }] : [],
  );
  return [
    ...before.map((each) => ({ ...each, isAfter: false })),
    ...after.map((each) => ({ ...each, isAfter: true })),
  ];
}

/**
 * Returns the calls that may be those of a round at this time: the last one before it, or the first one after it.
 * Plugins are called once in a round. The wall clock has whole milliseconds, within which the next round may begin.
 */
function callsOf(
  { history: { pluginCalls }, operator }: World,
  wanted: { plugin: string; method: string },
  at: number,
  isAfter: boolean,
): PluginCall[] {
  const calls = pluginCalls.filter(
    ({ plugin, method }) => plugin === wanted.plugin && method === wanted.method,
  );
  // GetEvictPods and ThresholdMet are called one after the other, each with a deadline of at most the period.
  const periods = operator.inForce.map(({ settings }) => settings.syncPeriodMs);
  const oldest = at - 2 * Math.min(LONGEST_CALL_MS, Math.max(...periods)) - SLACK_MS;
  const nearest = isAfter
    ? [calls.find((call) => call.at > at), calls.find((call) => call.at >= at + 1)]
    : [calls.findLast((call) => call.at < at && call.at >= oldest)];
  return [
    ...nearest.filter((call) => call !== undefined),
    ...calls.filter((call) => call.at >= at && call.at < at + 1),
  ];
}
