import type { EvictionPod, PodExplanation } from "../../eviction/index.ts";
import { type Output, paint } from "../output.ts";
import { plainText } from "../plain-text.ts";
import { roundText } from "./explained-round.ts";
import { verdictOf } from "./verdict.ts";
import { counted, offsetOf, timeOf } from "./wording.ts";

/** The page of `nodekeeper explain pod`: what became of the pod first, then what was done, then each round. */
export function explanationPage(explanation: PodExplanation, output: Output): string {
  const { namespace, name, uid, rounds } = explanation;
  const pod = rounds.findLast((round) => round.pod !== null)?.pod;
  const verdict = verdictOf(explanation);
  return [
    `${paint(output, "bold", plainText(`Pod ${namespace}/${name}`, 600))}  (${plainText(uid)})\n`,
    pod ? `${plainText(podText(pod), 600)}\n` : "",
    `\n${paint(output, verdict.colour, verdict.text)}\n`,
    stepsText(explanation, output),
    explanation.omitted > 0
      ? `\n(${counted(explanation.omitted, "round")} without consequence left out)\n`
      : "",
    ...rounds.map((round) => `\n${roundText(round, output)}`),
    footer(explanation, output),
  ].join("");
}

function podText({
  qosLevel,
  qosClass,
  priority,
  priorityClassName,
  gracePeriodSeconds,
  owner,
}: EvictionPod): string {
  const className = priorityClassName ? ` (${priorityClassName})` : "";
  const of = owner ? `, of ${owner.kind} ${owner.name}` : "";
  return `${qosLevel}, ${qosClass}, priority ${priority}${className}, grace period ${gracePeriodSeconds} s${of}`;
}

// What was done, with the time since the pod was first chosen.
function stepsText({ rounds, steps }: PodExplanation, output: Output): string {
  const [first] = steps;
  if (!first) return "";
  const from = rounds.find((round) => round.victim !== null)?.at ?? first.at;
  const offsets = steps.map(({ at }) => offsetOf(at - from));
  const width = Math.max(...offsets.map((offset) => offset.length));
  const lines = steps.map(
    ({ at, message }, index) =>
      `  ${timeOf(at)}  ${offsets[index]!.padStart(width)}  ${plainText(message)}\n`,
  );
  return `\n${paint(output, "bold", "What was done")}\n${lines.join("")}`;
}

function footer({ otherUids, recordsSince }: PodExplanation, output: Output): string {
  const others =
    otherUids.length === 0
      ? ""
      : `Older pods of this name are recorded, explained by their UIDs: ${plainText(otherUids.join(", "), 500)}\n`;
  const since = recordsSince === null ? "" : `Records go back to ${timeOf(recordsSince)}.\n`;
  return others || since ? `\n${paint(output, "dim", `${others}${since}`.trimEnd())}\n` : "";
}
