import { isUncertain } from "@nodekeeper/api/decide";
import { claimOfEnd, falsehoods, type LostEvidence, type Statements } from "../../support/endings/claims.ts";
import type { Truth } from "../../support/endings/truth.ts";
import type { FaultRates } from "../world/faults.ts";
import { type History, isEvictionRequest, REWRITTEN_MS } from "../world/history.ts";
import type { PodTruth } from "../world/pod-truths.ts";
import { LONGEST_GRACE_S } from "../world/settings.ts";
import { statementsAbout } from "../world/statements.ts";
import type { World } from "../world/world.ts";
import { REQUEST_TIMEOUT_MS } from "./acts.ts";
import type { Rule } from "./rule.ts";

export const truth: readonly Rule[] = [
  {
    promise: "What is stated about a pod is true; that it is not known is stated only if evidence was lost.",
    atRest: async (world) => {
      world.api.pods.look();
      const settled = [...world.api.pods.all.values()].filter((pod) => isSettled(world, pod));
      const stated = await statementsAbout(world, settled);
      // The world goes on while the agent answers.
      world.api.pods.look();
      return stated.flatMap(({ pod, said }) => {
        if (!isSettled(world, pod)) return [];
        const lost = lostAbout(world, pod);
        const isStopped = world.history.stopped(pod.uid).length > 0 || world.history.isStoppedLate(pod);
        const about = isStopped ? ofLastStop(said) : said;
        const found = truthsAbout(world, pod).map((truth) => falsehoods(about, truth, lost));
        if (found.every(({ length }) => length > 0))
          return [
            `${pod.name}: ${found.map((each) => each.join("; ")).join("; or ")}. It says: ${said.verdict}`,
          ];
        const mistimed = mistimedDeletion(world, pod, said);
        if (mistimed) return [`${pod.name}: ${mistimed}`];
        const isStated =
          pod.goneAt === undefined || !said.hasHistory || /pod (found )?deleted/i.test(said.page);
        return isStated ? [] : [`${pod.name} is gone, of which nothing is said: ${said.verdict}`];
      });
    },
  },
];

// A pod may continue to run after its containers were stopped, and another client may end it, or another eviction of it
// may have no effect. If the last eviction was decided after the pod's end, the verdict is about the eviction that
// stopped the containers, or may have, and the later ones must state that they had no effect.
function ofLastStop(said: Statements): Statements {
  const { outcomes, rows, marks, page } = said;
  const stop = outcomes.findLastIndex(
    ({ result, stopsContainers }) => result === "terminated" || (result === "unknown" && stopsContainers),
  );
  const after = outcomes.slice(stop + 1);
  const isLate =
    outcomes.at(-1)?.result === "superseded" &&
    stop >= 0 &&
    after.every((end) => ["other", "kept"].includes(claimOfEnd(end)));
  if (!isLate) return { ...said, page: withoutStops(page), marks: lastMarks(said) };
  // A withdrawal without effect has no mark.
  const marked = after.filter((end) => end.result !== "withdrawn" || isUncertain(end)).length;
  return {
    ...said,
    outcomes: outcomes.slice(0, stop + 1),
    rows: rows.slice(0, -after.length),
    marks: marks.slice(0, -marked),
    eviction: outcomes[stop],
    page: withoutStops(page).replaceAll(/^.*before its eviction was (sent|accepted).*$/gm, ""),
  };
}

const NOT_WATCHED = /Pod deleted between (\S+Z) and (\S+Z)/;
const WATCHED = /Pod deleted at (\S+Z)/;
// Longest delay of a message in a world without slow messages.
const QUICK_MS = 100;

/**
 * Returns the problem if the page says that the pod existed when it was gone, or that it was deleted at another time.
 * Undefined if it does not.
 */
function mistimedDeletion(
  { machine, plan: { faults }, faults: met }: World,
  { goneAt }: PodTruth,
  { page }: Statements,
): string | undefined {
  const [, from = "", to = ""] = NOT_WATCHED.exec(page) ?? [];
  if (Date.parse(from) > Date.parse(to)) return `deleted between ${from} and ${to}`;
  const [, at = ""] = WATCHED.exec(page) ?? [];
  if (`${from}${at}` === "" || goneAt === undefined || met.wallSteps) return undefined;
  const gone = machine.wallAtStart + goneAt;
  const lateMs = QUICK_MS + (faults.slow > 0 ? faults.slowestMs : 0);
  // When a pod was gone is known with the next write at the latest.
  if (Date.parse(at) > gone + lateMs)
    return `it was gone at ${new Date(gone).toISOString()}, and is said to have been deleted at ${at}`;
  return Date.parse(from) > gone + lateMs
    ? `it was gone at ${new Date(gone).toISOString()}, and is said to have been there at ${from}`
    : undefined;
}

function withoutStops(page: string): string {
  return page
    .replace(/Pod deleted (at \S+|between \S+ and \S+), not by Nodekeeper\./, "")
    .replaceAll(/Evicted through the Eviction API by another client.*$/gm, "")
    .replaceAll(/^ {2}ended +evicted: stopped .*$/gm, "");
}

// A withdrawal without effect has no mark: the last one is of an eviction before, which stopped the containers.
function lastMarks({ outcomes, marks }: Statements): string[] {
  const last = outcomes.at(-1);
  return last?.result === "withdrawn" && !isUncertain(last) ? [] : marks;
}

// After a pod is gone, the next round of the agent records how its eviction ended.
const UNTIL_RECORDED_MS = 15_000;

/** Returns whether a pod runs on, or has been gone for long enough. */
function isSettled(world: World, pod: PodTruth): boolean {
  const { machine, history } = world;
  const { uid, createdAt, endedBy, goneAt } = pod;
  const { now } = machine.scheduler;
  if (goneAt !== undefined) return now - goneAt > UNTIL_RECORDED_MS;
  if (world.unheard(pod, createdAt, now).length > 0) return false;
  const last = history.stops.findLast(({ podUid }) => podUid === uid);
  const isNamed = history.namings.some((naming) => naming.uid === uid && naming.at >= (last?.at ?? 0));
  if (isNamed) return false;
  // A pod of which containers were stopped runs on, or has finished.
  if (last) return now - last.at > UNTIL_STOPPED_MS;
  return endedBy === undefined;
}

// A StopContainer takes its grace period and the release margin, and then what it leads to is recorded.
const UNTIL_STOPPED_MS = 1_000 * LONGEST_GRACE_S + 30_000 + UNTIL_RECORDED_MS;

/**
 * Returns who may be said to have ended a pod. Several answers are true if containers were stopped, because the last
 * eviction is the subject: another one may have been decided and given up after the first, or others may have ended the
 * pod before or while its containers were stopped.
 */
function truthsAbout(world: World, pod: PodTruth): Truth[] {
  const { history } = world;
  const { uid, endedBy, endedAt } = pod;
  const ended = endedBy ?? "alive";
  const last = history.stopped(uid).at(-1);
  // A container may exit by itself while the call is on its way. The pod goes on.
  const isOurs =
    history.isStoppedLate(pod) || (pod.endedBy === undefined && history.hasExitedDuringCall(uid));
  if (!last) return isOurs ? ["ours", ended] : [ended];
  const overAt = Math.max(...last.stops.map(({ at, exitedAt = at }) => exitedAt));
  const isOnlyOne =
    history.stopEvictions.findLast(({ podUid }) => podUid === uid) === last &&
    !history.namings.some((naming) => naming.uid === uid && naming.at >= last.at) &&
    world.unheard(pod, overAt, Math.max(overAt, endedAt)).length === 0;
  // The containers may exit because of the deletion.
  const isContested = endedBy === "other" && endedAt <= overAt + UNTIL_DELETED_MS;
  // Of a stop that could not be recorded, only the end of the pod is known.
  return isOnlyOne && !isContested && !isUnwritten(world, pod) ? ["ours"] : ["ours", ended];
}

// A deletion by force ends the containers before the API server has answered it.
const UNTIL_DELETED_MS = 100;

// An acceptance is recorded as soon as the whole response has arrived, and the end of a stop as soon as a list of the
// runtime confirms it.
const UNTIL_KEPT_MS = 1_000;

/**
 * Returns whether the agent has learned and recorded that the API server accepted the eviction of a pod, or that its
 * containers were stopped.
 */
function isResponseKept(world: World, pod: PodTruth): boolean {
  const {
    history,
    plan: { faults },
    faults: met,
  } = world;
  const { uid } = pod;
  const accepted = history.evictions.find(
    ({ podUid, write }) => podUid === uid && write?.deliveredAt !== undefined,
  )?.write?.deliveredAt;
  // The response to a StopContainer does not show what became of an eviction that was tried after it.
  const triedAt = Math.max(0, ...attempts(world, pod));
  const lastStops = history.stopped(uid).at(-1)?.stops ?? [];
  const stops = lastStops.filter(({ answeredAt = 0 }) => answeredAt >= triedAt);
  const stoppedAt = stops.length > 0 ? Math.max(...stops.map(({ answeredAt = 0 }) => answeredAt)) : undefined;
  const heardAt = accepted ?? stoppedAt;
  // Neither while the disk is full or read-only.
  if (heardAt === undefined || faults.slow > 0 || met.fullDisks || isUnwritten(world, pod)) return false;
  const keptAt = heardAt + UNTIL_KEPT_MS;
  if (history.boots.some(({ at, keptUntil }) => at >= heardAt && keptUntil < keptAt)) return false;
  // A stop is confirmed by a list of the runtime.
  if (
    !accepted &&
    history.runtimeOutages.some(({ from, to }) => from <= keptAt && to + RECONNECTED_MS >= heardAt)
  )
    return false;
  return !history.lives.some(
    ({ endedAt }) => endedAt !== undefined && endedAt >= heardAt && endedAt <= keptAt,
  );
}

/** Returns when plugins named a pod, and when requests of its eviction were sent, whatever became of them. */
function attempts({ history }: World, { uid, name }: PodTruth): number[] {
  const { namings, writes, lost } = history;
  return [
    ...namings.filter((naming) => naming.uid === uid),
    ...writes.filter((write) => write.podUid === uid && isEvictionRequest(write)),
    ...lost.filter(({ method, url }) => method !== "GET" && url.includes(`/pods/${name}`)),
  ].map(({ at }) => at);
}

/** Returns whether an agent ended before it could write what it recorded while the disk was full. */
function isUnsaved({ full, lives }: History, from: number, to: number): boolean {
  const times = full.filter((each) => each.from <= to && each.to >= from);
  return times.some((each) =>
    lives.some(({ endedAt = 0 }) => endedAt >= from && endedAt <= each.to + REWRITTEN_MS),
  );
}

/** Returns whether an agent that could not write its disk was there while the pod was. */
function isUnwritten({ history }: World, { createdAt, endedAt, goneAt = endedAt }: PodTruth): boolean {
  return history.unwritten.some(({ from, to }) => from <= goneAt + UNTIL_RECORDED_MS && to >= createdAt);
}

// After an outage, the agent is connected with the runtime again within this time.
const RECONNECTED_MS = 20_000;

/** Returns which evidence about a pod cannot have reached the agent, or was not kept. */
function lostAbout(world: World, pod: PodTruth): LostEvidence {
  const { history, plan, machine } = world;
  const { uid, name, createdAt } = pod;
  // A pod whose containers were stopped may run on.
  const endedAt =
    pod.endedBy === undefined
      ? (history.stops.findLast(({ podUid }) => podUid === uid)?.at ?? 0)
      : pod.endedAt;
  const { goneAt = endedAt } = pod;
  const decidedAt =
    world.unheard(pod, createdAt, endedAt).length > 0
      ? createdAt
      : (history.namings.find((naming) => naming.uid === uid)?.at ?? endedAt);
  const recordedAt = goneAt + UNTIL_RECORDED_MS;
  const isDead = (from: number, to: number) =>
    history.lives.some((life, at) => {
      const next = history.lives[at + 1];
      return life.endedAt !== undefined && life.endedAt <= to && (next?.startedAt ?? to) >= from;
    });
  // Commits that a boot has lost.
  const isForgotten = (from: number, to: number) =>
    history.boots.some(({ at, keptUntil }) => keptUntil <= to && at >= from);
  const isLost = history.lost.some(({ url }) => url.includes(`/pods/${name}`));
  // A 500 or 503 may come from a proxy, or from an API server that has lost etcd's response: it proves no refusal.
  const isInconclusive = history.writes.some(
    (write) => write.podUid === uid && isEvictionRequest(write) && write.status >= 500,
  );
  const isLate = plan.faults.slow > 0 && plan.faults.slowestMs > REQUEST_TIMEOUT_MS;
  const stops = history.stops.filter(({ podUid }) => podUid === uid);
  // A call that failed or was interrupted because the agent was killed may have stopped a container. So may a call that
  // succeeded before the container exited, or that waits for a connection to the runtime when others end the pod.
  const isUnanswered =
    stops.some(({ answeredAt = 0, exitedAt = answeredAt }) => answeredAt === 0 || exitedAt > answeredAt) ||
    (world.runtime.stops !== undefined &&
      history.runtimeOutages.some(({ from, to }) => from <= endedAt && to + RECONNECTED_MS >= decidedAt));
  const isResponseLost =
    isLost ||
    isInconclusive ||
    isLate ||
    isDead(decidedAt, recordedAt) ||
    isForgotten(decidedAt, recordedAt) ||
    isUnwritten(world, pod);
  return {
    response: isUnanswered || (isResponseLost && !isResponseKept(world, pod)),
    records:
      isDead(endedAt, recordedAt) ||
      isForgotten(createdAt, recordedAt + blindnessMs(world)) ||
      isUnsaved(history, Math.max(createdAt, endedAt - LATE_REQUEST_MS), recordedAt) ||
      isUnwritten(world, pod) ||
      // The agent may not have seen the start time of a pod, before which no request can have been sent.
      history.unwritten.some(({ to }) => to >= endedAt - LATE_REQUEST_MS) ||
      machine.wallOffset !== 0 ||
      wasPerhapsUnseen(pod, world),
  };
}

// A request of an agent that is gone may be executed this long after it was sent.
const LATE_REQUEST_MS = 60_000;

// A watch that the API server refuses or ends is opened again after at most this, and then after one slow response.
const LONGEST_BLINDNESS_MS = 30_000;
// How long bookmarks may be missing before a watch is reopened.
const STALL_MS = 180_000;

/** Returns how long the agent's watch of pods may miss what happens, by faults other than outages. */
function blindnessMs({ plan: { faults } }: World): number {
  const isStalled = Number.isFinite(faults.stalledWatches);
  return isRefused(faults) || isStalled || Number.isFinite(faults.cutWatches)
    ? longestBlindnessMs(faults)
    : 0;
}

function isRefused({ refusals, expiredWatches }: FaultRates): boolean {
  return Object.values(refusals).some((share) => share > 0) || expiredWatches > 0;
}

function longestBlindnessMs({ slow, slowestMs, stalledWatches }: FaultRates): number {
  const slowMs = slow > 0 ? slowestMs : 0;
  return LONGEST_BLINDNESS_MS + slowMs + (Number.isFinite(stalledWatches) ? STALL_MS : 0);
}

const POD_LIST = /\/api\/v1\/pods(\?|$)/;

/** Returns whether a pod may have come and gone while the agent's watch of pods was not open. */
function wasPerhapsUnseen({ createdAt, endedAt, goneAt = endedAt }: PodTruth, world: World): boolean {
  const {
    history,
    plan: { faults },
  } = world;
  const isListLost = (from: number) =>
    history.lost.some(({ at, url }) => at >= from && at <= goneAt && POD_LIST.test(url));
  // After a list is lost, the agent waits once more.
  const waits = isListLost(createdAt - LONGEST_BLINDNESS_MS) ? 2 : 1;
  if (goneAt - createdAt < waits * blindnessMs(world)) return true;
  // The first list of an agent may arrive late, or be lost and requested again.
  const slowMs = faults.slow > 0 ? 2 * faults.slowestMs : 0;
  const isUnlisted = history.lives.some(
    ({ startedAt }, at) =>
      createdAt >= (history.lives[at - 1]?.endedAt ?? 0) &&
      goneAt >= startedAt &&
      goneAt <= startedAt + slowMs + (isListLost(startedAt) ? LONGEST_BLINDNESS_MS : 0),
  );
  if (isUnlisted) return true;
  const longestMs = longestBlindnessMs(faults);
  // The watch may have ended before an outage, and what is tried after it may be refused by chance.
  const afterMs = isRefused(faults) ? 2 * longestMs : longestMs;
  let [from, to] = [0, Number.NEGATIVE_INFINITY];
  for (const outage of history.apiOutages) {
    if (outage.from - longestMs > to) from = outage.from - longestMs;
    to = Math.max(to, outage.to + afterMs);
    if (createdAt >= from && goneAt <= to) return true;
  }
  return false;
}
