import { answerOf, type EvictPodAnswer, type ThresholdAnswer } from "@nodekeeper/api/decide";
import { CNRS, NODE } from "../world/api-server.ts";
import { freeBytes, TOTAL_KB } from "../world/host-memory.ts";
import { isShort, type Judged } from "../world/in-tree.ts";
import { DETECTION_MS, MEMORY_PLUGIN, MOST_PIDS, PID_PLUGIN } from "../world/in-tree-settings.ts";
import type { World } from "../world/world.ts";
import { LONGEST_CALL_MS, type RecordedRound, recordedRounds, SLACK_MS, timeOf } from "./recorded-rounds.ts";
import type { Rule } from "./rule.ts";

export const inTree: readonly Rule[] = [
  {
    promise: "What in-tree plugins answer in a round is what the host's files said then.",
    atRest: async (world) => {
      // The times of rounds are those of the wall clock.
      if (!world.host.isWatched || world.machine.wallOffset !== 0) return [];
      const all = await recordedRounds(world);
      return all.flatMap((round) => wrongIn(world, round).map((what) => `round ${round.id}: ${what}`));
    },
  },
  {
    promise: "After quiet, the published properties of the machine are those of its files.",
    atRest: (world) => {
      if (!world.host.isWatched) return [];
      const actual = publishedOf(world);
      // The API server has rejected the report by chance, which the agent can't know: it is tried again in ten minutes.
      if (isRejected(world)) return [];
      return Object.entries(expectedOf(world)).flatMap(([name, expected]) => {
        const found = JSON.stringify(actual[name]);
        return found === JSON.stringify(expected)
          ? []
          : [`${name}: ${found ?? "nothing"} instead of ${JSON.stringify(expected)}`];
      });
    },
  },
];

/** Returns the answers of a round that the host's files did not justify. */
function wrongIn(world: World, round: RecordedRound): string[] {
  const { input } = round;
  const at = timeOf(round, world);
  const periodMs = longestPeriodMs(world.operator, at);
  // GetEvictPods and ThresholdMet are called one after the other. Readings of pods may be half a period old.
  const from = at - 2 * Math.min(LONGEST_CALL_MS, periodMs) - periodMs / 2 - SLACK_MS;
  const judged = { from: from - DETECTION_MS, to: at, unseenMs: roundsApartMs(periodMs) };
  const named = input.plugins
    .filter(({ plugin }) => plugin === PID_PLUGIN)
    .flatMap(({ evictPods }) => answerOf(evictPods)?.pods ?? [])
    .filter((request) => !isTrue(world, request, from, at))
    .map(({ pod, reason }) => `${pod.name} is requested: "${reason}"`);
  const thresholds = input.plugins
    .filter(({ plugin }) => plugin === MEMORY_PLUGIN)
    .flatMap(({ threshold }) => wrongThreshold(world, answerOf(threshold), judged));
  const selected = input.tops
    .filter(({ plugin }) => plugin === MEMORY_PLUGIN)
    .flatMap(({ top }) => answerOf(top)?.pods ?? [])
    .filter(({ name }) => !world.inTree.isPressed(name, judged))
    .map(({ name }) => `${name} is selected without pressure`);
  return [...named, ...thresholds, ...selected];
}

/** Returns whether a pod had as many processes as a request says, and more than it may. */
function isTrue({ host }: World, { pod, reason }: EvictPodAnswer, from: number, to: number): boolean {
  const stated = Number.parseInt(reason, 10);
  return stated > MOST_PIDS && host.pods.pidsOf(pod.uid)?.during(from, to).includes(stated) === true;
}

function wrongThreshold(
  { host, inTree: allowed }: World,
  answer: ThresholdAnswer | null,
  judged: Judged,
): string[] {
  if (!answer) return [];
  const { observedValue, unit, condition } = answer;
  const read = host.memory.readable.during(judged.from, judged.to);
  const isRead = read.some((percent) => percent !== undefined && freeBytes(percent) === observedValue);
  if (unit === "bytes" && observedValue !== null && !isRead)
    return [`${observedValue} bytes are free, and ${read.join(" or ")} % were`];
  if (condition && !allowed.isPressed(`${host.reclaimed}-`, judged))
    return [`${condition.name} without pressure`];
  return !condition && read.every(isShort) ? [`no condition while ${read.join(" or ")} % are free`] : [];
}

/** Returns the longest period that was in force in the round at a time, or in the one before. */
function longestPeriodMs(operator: World["operator"], at: number): number {
  return Math.max(...operator.between(at - 60_000, at).map(({ syncPeriodMs }) => syncPeriodMs));
}

/** Returns how long after a round the next one observes at the latest: three calls that are late, and the wait. */
function roundsApartMs(periodMs: number): number {
  return 4 * periodMs + DETECTION_MS + SLACK_MS;
}

type Properties = Record<string, unknown>;

function publishedOf({ api }: World): Properties {
  const { spec } = (api.store.get(CNRS, NODE) ?? {}) as {
    spec?: {
      nodeResourceProperties?: {
        propertyName: string;
        propertyQuantity?: string;
        propertyValues?: string[];
      }[];
    };
  };
  return Object.fromEntries(
    (spec?.nodeResourceProperties ?? []).map(({ propertyName, propertyQuantity, propertyValues }) => [
      propertyName,
      propertyName === "topology" ? propertyValues?.map(interfaceOf) : propertyQuantity,
    ]),
  );
}

function interfaceOf(text: string): Properties {
  const { Name, Speed, Enable } = JSON.parse(text) as Properties;
  return { Name, Speed, Enable };
}

function expectedOf({ host }: World): Properties {
  const present = host.interfaces.filter(({ isPresent }) => isPresent);
  const fastest = Math.max(0, ...present.filter(({ isUp }) => isUp).map(({ speedMbps }) => speedMbps));
  return {
    numa: "1",
    nbw: fastest === 0 ? undefined : `${fastest / 1_000}k`,
    cpu: `${host.cpus.value}`,
    memory: `${TOTAL_KB / 2 ** 20}Gi`,
    topology: present.map(({ name, speedMbps, isUp }) => ({ Name: name, Speed: speedMbps, Enable: isUp })),
  };
}

function isRejected({ history }: World): boolean {
  return history.writes.some(
    ({ client, status, body }) =>
      client === "nodekeeper" &&
      status === 422 &&
      JSON.stringify(body ?? "").includes("nodeResourceProperties"),
  );
}
