import type { PodReference, Replay, ReplayedRound } from "../../eviction/index.ts";
import { type Output, paint } from "../output.ts";
import type { PolicyDifference } from "./policy-differences.ts";
import { roundsSince } from "./record-source.ts";
import { counted, graceText, labelled, timeOf } from "./wording.ts";

/** A replay, and in what the policies differ. */
export interface ShownReplay extends Replay {
  policy: PolicyDifference[];
}

/** The page of `nodekeeper replay`. @param since wall milliseconds from which on rounds were taken; undefined for all */
export function replayPage(replay: ShownReplay, since: number | undefined, output: Output): string {
  const { rounds, differing, uncertain, policy } = replay;
  if (rounds === 0) {
    return `No recorded ${since === undefined ? "round" : `round since ${timeOf(since)}`}: nothing to replay.\n`;
  }
  return [
    policy.length === 0
      ? "The policy is the one of the last of these rounds.\n"
      : "The policy differs from that of the last of these rounds:\n",
    ...policy.map(({ field, recorded, replayed }) =>
      labelled(
        field,
        `${JSON.stringify(replayed) ?? "nothing"} in place of ${JSON.stringify(recorded) ?? "nothing"}`,
      ),
    ),
    "\n",
    `${roundsSince(rounds, since)} replayed: ${counted(replay.victimsBefore, "victim")} then, ${replay.victimsAfter} under this policy.\n`,
    differing.length === 0
      ? "No round would have decided otherwise.\n"
      : `${counted(differing.length, "round")} would have decided otherwise. Each is replayed on its own recorded state: what an earlier difference would have led to is not known.\n`,
    uncertain > 0
      ? `Of ${counted(uncertain, "round")} more it is not known: a plugin would have been asked what it was not asked then.\n`
      : "",
    ...differing.map((round) => `\n${roundText(round, output)}`),
  ].join("");
}

function roundText(round: ReplayedRound, output: Output): string {
  const { id, at, spared, added, graceChanged, refusals, taints, unasked, otherOffer } = round;
  return [
    `${paint(output, "bold", `Round ${id} at ${timeOf(at)}`)}\n`,
    ...spared.map((pod) => paint(output, "green", labelled("- spared", `${nameOf(pod)}: ${pod.why}`))),
    ...added.map((pod) => paint(output, "red", labelled("+ evicted", `${nameOf(pod)}: ${pod.why}`))),
    ...graceChanged.map((pod) =>
      labelled("~ grace", `${nameOf(pod)}: ${graceText(pod.after)} in place of ${graceText(pod.before)}`),
    ),
    ...orderLines(round),
    ...Object.entries(refusals).map(([reason, [then, now]]) =>
      labelled("~ refused", `${reason}: ${now} in place of ${then}`),
    ),
    ...taints.missing.map((taint) => labelled("- taint", taint)),
    ...taints.added.map((taint) => labelled("+ taint", taint)),
    ...unasked.map((plugin) =>
      labelled("? unasked", `${plugin} would have been asked for its top pods: its answer is not known`),
    ),
    ...otherOffer.map((plugin) =>
      labelled("? offered", `${plugin} would have had other pods to choose from: its answer might differ`),
    ),
  ].join("");
}

// Who goes is the same, but not who goes first.
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
