import type { PolicyDifference, Replay, ReplayedRound } from "@nodekeeper/api/replay";
import {
  differenceText,
  type ReplayLabel,
  replayLines,
  replaySentences,
  timeOf,
} from "@nodekeeper/api/wording";
import { type Colour, type Output, paint } from "../output.ts";
import { labelled } from "../wording.ts";
import { roundsSince } from "./record-source.ts";

/** A replay, with the differences between the policies. */
export interface ShownReplay extends Replay {
  policy: PolicyDifference[];
}

/**
 * The page of `nodekeeper replay`. @param since wall-clock milliseconds of the first round; undefined for all rounds
 */
export function replayPage(replay: ShownReplay, since: number | undefined, output: Output): string {
  const { rounds, differing, policy } = replay;
  if (rounds === 0) {
    return `No recorded ${since === undefined ? "round" : `round since ${timeOf(since)}`}: nothing to replay.\n`;
  }
  const sentences = replaySentences(replay);
  return [
    policy.length === 0
      ? "The policy is the same as in the last replayed round.\n"
      : "The policy differs from the one in the last replayed round:\n",
    ...policy.map((difference) => labelled(difference.field, differenceText(difference))),
    "\n",
    `${roundsSince(rounds, since)} replayed: ${sentences.victims}\n`,
    `${sentences.differing}\n`,
    sentences.uncertain && `${sentences.uncertain}\n`,
    ...differing.map((round) => `\n${roundText(round, output)}`),
  ].join("");
}

const colours: Partial<Record<ReplayLabel, Colour>> = { "- evicted": "green", "+ evicted": "red" };

function roundText(round: ReplayedRound, output: Output): string {
  const lines = replayLines(round).map(({ label, pod, text }) => {
    const line = labelled(label, pod ? `${pod.namespace}/${pod.name}: ${text}` : text);
    const colour = colours[label];
    return colour ? paint(output, colour, line) : line;
  });
  return [`${paint(output, "bold", `Round ${round.id} at ${timeOf(round.at)}`)}\n`, ...lines].join("");
}
