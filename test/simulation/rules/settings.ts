import { keptName } from "../world/node.ts";
import { isDryRun, isFullDryRun, KEEP_LABEL, type Settings } from "../world/settings.ts";
import type { World } from "../world/world.ts";
import { eachEviction, eachWrite, LONGEST_ROUND_MS } from "./acts.ts";
import type { Rule } from "./rule.ts";

// The agent looks at its file every 10 s, also if it missed the notification, and waits until the file is settled.
const UNTIL_TAKEN_MS = 11_000;
// Until an agent that was started has read its state and looks at the file.
const UNTIL_STARTED_MS = 10_000;
// A pod is read, and then a request is sent, each with a deadline.
const TWO_REQUESTS_MS = 20_500;
// Three calls to a plugin, each of a period at most, and the wait for the next round.
const PERIODS_PER_ROUND = 4;

const eventsOfEviction = [
  "Evicted",
  "EvictionOverdue",
  "EvictionFailed",
  "EvictionBlocked",
  "SoftEvictionNotice",
];

export const settings: readonly Rule[] = [
  {
    promise: "A changed setting is in force within 11 seconds, or after a restart if it needs one.",
    watch: (world) => {
      const { operator, agent, history, machine } = world;
      let seen: readonly unknown[] = [];
      let missing: string | undefined;
      return () => {
        const { written, settings: taken } = operator;
        const { startedAt, configuredAt } = history.lives.at(-1)!;
        if (written !== seen[0] || taken !== seen[1] || configuredAt !== seen[2]) {
          seen = [written, taken, configuredAt];
          missing = written && missingOf(world, written, configuredAt);
        }
        if (missing === undefined || !agent.process) return undefined;
        const until = Math.max(operator.writtenAt + UNTIL_TAKEN_MS, startedAt + UNTIL_STARTED_MS);
        return machine.scheduler.now < until ? undefined : `not as in the file: ${missing}`;
      };
    },
  },
  {
    promise: "No pod is evicted that has a label to be skipped when the request is sent.",
    watch: eachEviction(({ operator }, { at, podName, what, isLate }) => {
      if (isLate || !podName.startsWith(keptName)) return undefined;
      const inForce = operator.between(at - TWO_REQUESTS_MS, at);
      return inForce.every(({ skipLabels }) => skipLabels.includes(KEEP_LABEL)) ? what : undefined;
    }),
  },
  {
    promise: "No pod is evicted at the request of plugins in dry run.",
    watch: eachEviction((world, { at, podUid, podName, what }) => {
      const { operator, history } = world;
      const from = at - LONGEST_ROUND_MS;
      const inForce = operator.between(from, at);
      const plugins = history.namings
        .filter((naming) => naming.uid === podUid && naming.at >= from)
        .map(({ plugin }) => plugin);
      plugins.push(...world.unheard({ uid: podUid, name: podName }, from, at));
      const isTrial = plugins.every((plugin) => inForce.every((each) => isDryRun(each, plugin)));
      return plugins.length > 0 && isTrial
        ? `${what}: requested by ${[...new Set(plugins)].join(", ")}`
        : undefined;
    }),
  },
  {
    promise: "Full dry run writes nothing about eviction, from the round after the one in which it begins.",
    watch: eachWrite((world, { at, method, path, body }) => {
      if (!isAboutEviction(method, path, body) || !isFullDryRunSince(world, at)) return undefined;
      return `${method} ${path}`;
    }),
  },
  {
    promise: "Full dry run stops no container, from the round after the one in which it begins.",
    watch: eachEviction((world, { at, write, what }) =>
      !write && isFullDryRunSince(world, at) ? what : undefined,
    ),
  },
];

function isAboutEviction(method: string, path: string, body: unknown): boolean {
  if (/\/eviction$/.test(path)) return true;
  if (/\/pods\/[^/]+$/.test(path)) return method !== "GET";
  if (/\/nodes\/[^/]+$/.test(path)) return JSON.stringify(body).includes('"taints"');
  if (/\/nodes\/[^/]+\/status$/.test(path)) return JSON.stringify(body).includes("EvictionBlocked");
  return path.endsWith("/events") && eventsOfEviction.includes((body as { reason?: string }).reason ?? "");
}

/** Returns whether full dry run has been in force for so long that a round with it has begun and been decided. */
function isFullDryRunSince({ operator }: World, at: number): boolean {
  if (!isFullDryRun(operator.settings)) return false;
  const { syncPeriodMs } = operator.settings;
  const from = at - 2 * PERIODS_PER_ROUND * syncPeriodMs - TWO_REQUESTS_MS;
  return operator.between(from, at).every(isFullDryRun);
}

/** Returns the settings that are not as the file has them. */
function missingOf({ operator }: World, written: Settings, configuredAt: number): string | undefined {
  const { settings: taken, writtenAt } = operator;
  const keys = Object.keys(written) as (keyof Settings)[];
  const missing = keys.filter((key) => JSON.stringify(written[key]) !== JSON.stringify(taken[key]));
  const isExpected = (key: keyof Settings) => key !== "taintPrefix" || configuredAt > writtenAt;
  return missing.filter(isExpected).join(", ") || undefined;
}
