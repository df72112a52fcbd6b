import type { PodReference, Replay, ReplayedRound } from "../../eviction/index.ts";
import { type Output, paint } from "../output.ts";
import { counted, graceText, labelled, refusalWord, timeOf } from "../wording.ts";
import type { PolicyDifference } from "./policy-differences.ts";
import { roundsSince } from "./record-source.ts";

/** A replay with the differences of the policies. */
export interface ShownReplay extends Replay {
  policy: PolicyDifference[];
}

/** The page of `nodekeeper replay`. @param since wall milliseconds of the first round; undefined for all rounds */
export function replayPage(replay: ShownReplay, since: number | undefined, output: Output): string {
  const { rounds, differing, uncertain, policy } = replay;
  if (rounds === 0) {
    return `No recorded ${since === undefined ? "round" : `round since ${timeOf(since)}`}: nothing to replay.\n`;
  }
  return [
    policy.length === 0
      ? "The policy is that of the last replayed round.\n"
      : "The policy differs from that of the last replayed round:\n",
    ...policy.map(({ field, recorded, replayed }) =>
      labelled(
        field,
        `${JSON.stringify(replayed) ?? "unset"} instead of ${JSON.stringify(recorded) ?? "unset"}`,
      ),
    ),
    "\n",
    `${roundsSince(rounds, since)} replayed: ${counted(replay.victimsBefore, "victim")} recorded, ${replay.victimsAfter} with this policy.\n`,
    differing.length === 0
      ? "No round differs.\n"
      : `${counted(differing.length, "round")} ${differing.length === 1 ? "differs" : "differ"}. Each round starts from its recorded state: later effects of a difference are not simulated.\n`,
    uncertain > 0
      ? `Not known for ${counted(uncertain, "more round")}: a plugin would have been called, or called with other pods, and its answer is not recorded.\n`
      : "",
    ...differing.map((round) => `\n${roundText(round, output)}`),
  ].join("");
}

function roundText(round: ReplayedRound, output: Output): string {
  const { id, at, notEvicted, added, graceChanged, refusals, taints, unasked, otherOffer } = round;
  return [
    `${paint(output, "bold", `Round ${id} at ${timeOf(at)}`)}\n`,
    ...notEvicted.map((pod) => paint(output, "green", labelled("- evicted", `${nameOf(pod)}: ${pod.why}`))),
    ...added.map((pod) => paint(output, "red", labelled("+ evicted", `${nameOf(pod)}: ${pod.why}`))),
    ...graceChanged.map((pod) =>
      labelled("~ grace", `${nameOf(pod)}: ${graceText(pod.after)} instead of ${graceText(pod.before)}`),
    ),
    ...orderLines(round),
    ...Object.entries(refusals).map(([reason, [then, now]]) =>
      labelled("~ refused", `${refusalWord(reason)}: ${now} instead of ${then}`),
    ),
    ...taints.missing.map((taint) => labelled("- taint", taint)),
    ...taints.added.map((taint) => labelled("+ taint", taint)),
    ...unasked.map((plugin) =>
      labelled(
        "? unknown",
        `GetTopEvictionPods of ${plugin} would have been called: its answer is not recorded`,
      ),
    ),
    ...otherOffer.map((plugin) =>
      labelled("? unknown", `${plugin} would have been offered other pods: its answer might differ`),
    ),
  ].join("");
}

// The victims are the same in another order.
function orderLines({ before, after }: ReplayedRound): string[] {
  const isSame =
    before.length !== after.length || before.every(({ uid }, index) => uid === after[index]?.uid);
  const known = new Set(before.map(({ uid }) => uid));
  if (isSame || after.some(({ uid }) => !known.has(uid))) return [];
  return [labelled("~ order", after.map(nameOf).join(", "))];
}

function nameOf({ namespace, name }: PodReference): string {
  return `${namespace}/${name}`;
}
